"""Calls of ops on resource variables: those in ops/state/ and ops/training/optimizers.cc."""


def calls(add):
    for array in [f32, f64, i32, i64, f16]:
        x = array([[1, 2], [3, 4], [5, 6]])
        add("AssignVariableOp", [variable(x), x + 1])
        add("AssignAddVariableOp", [variable(x), x])
        add("AssignSubVariableOp", [variable(x), x + 1])
        add("ReadVariableOp", [variable(x)], dtype=tf.as_dtype(x.dtype))
        add("ResourceGather", [variable(x), i32([[2], [0]])], dtype=tf.as_dtype(x.dtype))
        add("ResourceGatherNd", [variable(x), i32([[2, 1], [0, 0]])], dtype=tf.as_dtype(x.dtype))
        for op in ["Update", "Add", "Sub", "Mul", "Div", "Min", "Max"]:
            updates = array([[7, 1], [2, 2]])
            add("ResourceScatter" + op, [variable(x), i32([2, 0]), updates])
            add("ResourceScatter" + op, [variable(x), i64([1]), array(2)])
            add("ResourceScatter" + op, [variable(x), i64([3]), updates[:1]])
            if op not in ["Mul", "Div"]:
                add("ResourceScatterNd" + op, [variable(x), i32([[2], [0]]), updates])
                add("ResourceScatterNd" + op, [variable(x), i64([[2, 1]]), array([9])])
        add("ResourceStridedSliceAssign", [variable(x), i32([0]), i32([3]), i32([2]), x[:2] * 2])
        add("VariableShape", [variable(x)])
    bits = boolean([0, 0, 1, 1])
    for op in ["ResourceScatterNdAdd", "ResourceScatterNdSub"]:
        add(op, [variable(bits), i32([[0], [1], [2], [3]]), boolean([0, 1, 0, 1])])
    add("ResourceScatterAdd", [variable(f32([1, 2])), i32([0, 0, 1]), f32([1, 10, 100])])
    for array in [i32, i64]:
        add("ResourceCountUpTo", [variable(array(3))], limit=5, T=tf.as_dtype(array(0).dtype))
        add("ResourceCountUpTo", [variable(array(5))], limit=5, T=tf.as_dtype(array(0).dtype))

    for array, rtol in [(f32, 1e-6), (f64, 1e-13)]:
        near = dict(atol=rtol, rtol=rtol)
        dtype = tf.as_dtype(array(0).dtype)
        numbers = lambda seed: random(dtype, [3, 2], low=0.25, high=2, seed=seed)
        var, accum, accum2, accum3 = [variable(numbers(s)) for s in [1, 2, 3, 4]]
        grad = random(dtype, [3, 2], seed=5)
        rows = [random(dtype, [2, 2], seed=6), i32([2, 0])]
        c = lambda *values: [array(v) for v in values]
        for locking in [False, True]:
            dense = [
                ("GradientDescent", [var, *c(0.1), grad], {}),
                ("Momentum", [var, accum, *c(0.1), grad, *c(0.9)], {}),
                ("Momentum", [var, accum, *c(0.1), grad, *c(0.9)], dict(use_nesterov=True)),
                ("KerasMomentum", [var, accum, *c(0.1), grad, *c(0.9)], {}),
                ("KerasMomentum", [var, accum, *c(0.1), grad, *c(0.9)], dict(use_nesterov=True)),
                ("Adagrad", [var, accum, *c(0.1), grad], {}),
                ("AdagradV2", [var, accum, *c(0.1, 1e-3), grad], {}),
                ("Adadelta", [var, accum, accum2, *c(0.1, 0.9, 1e-3), grad], {}),
                ("Adam", [var, accum, accum2, *c(0.9, 0.99, 0.1, 0.8, 0.9, 1e-3), grad], {}),
                ("Adam", [var, accum, accum2, *c(0.9, 0.99, 0.1, 0.8, 0.9, 1e-3), grad],
                 dict(use_nesterov=True)),
                ("AdamWithAmsgrad",
                 [var, accum, accum2, accum3, *c(0.9, 0.99, 0.1, 0.8, 0.9, 1e-3), grad], {}),
                ("AdaMax", [var, accum, accum2, *c(0.9, 0.1, 0.8, 0.9, 1e-3), grad], {}),
                ("RMSProp", [var, accum, accum2, *c(0.1, 0.9, 0.5, 1e-3), grad], {}),
                ("CenteredRMSProp",
                 [var, variable(numbers(2) / 8), accum2, accum3, *c(0.1, 0.9, 0.5, 1e-3), grad], {}),
                ("Ftrl", [var, accum, accum2, grad, *c(0.1, 0.2, 0.3, -0.5)], {}),
                ("FtrlV2", [var, accum, accum2, grad, *c(0.1, 0.2, 0.3, 0.1, -0.5)], {}),
                ("AddSign", [var, accum, *c(0.1, 2, 0.5, 0.9), grad], {}),
                ("PowerSign", [var, accum, *c(0.1, 2, 0.5, 0.9), grad], {}),
                ("ProximalGradientDescent", [var, *c(0.1, 0.2, 0.3), grad], {}),
                ("ProximalAdagrad", [var, accum, *c(0.1, 0.2, 0.3), grad], {}),
                ("AdagradDA", [var, accum, accum2, grad, *c(0.1, 0.2, 0.3), i64(3)], {}),
            ]
            sparse = [
                ("Momentum", [var, accum, *c(0.1), *rows, *c(0.9)], {}),
                ("KerasMomentum", [var, accum, *c(0.1), *rows, *c(0.9)], {}),
                ("Adagrad", [var, accum, *c(0.1), *rows], {}),
                ("AdagradV2", [var, accum, *c(0.1, 1e-3), *rows], {}),
                ("Adadelta", [var, accum, accum2, *c(0.1, 0.9, 1e-3), *rows], {}),
                ("RMSProp", [var, accum, accum2, *c(0.1, 0.9, 0.5, 1e-3), *rows], {}),
                ("CenteredRMSProp",
                 [var, variable(numbers(2) / 8), accum2, accum3, *c(0.1, 0.9, 0.5, 1e-3), *rows],
                 {}),
                ("Ftrl", [var, accum, accum2, *rows, *c(0.1, 0.2, 0.3, -0.5)], {}),
                ("FtrlV2", [var, accum, accum2, *rows, *c(0.1, 0.2, 0.3, 0.1, -0.5)], {}),
                ("ProximalGradientDescent", [var, *c(0.1, 0.2, 0.3), *rows], {}),
                ("ProximalAdagrad", [var, accum, *c(0.1, 0.2, 0.3), *rows], {}),
                ("AdagradDA", [var, accum, accum2, *rows, *c(0.1, 0.2, 0.3), i64(3)], {}),
            ]
            if locking and array is not f32:
                continue
            for kind, calls_of_kind in [("ResourceApply", dense), ("ResourceSparseApply", sparse)]:
                for op, inputs, attrs in calls_of_kind:
                    add(kind + op, inputs, use_locking=locking, **attrs, **near)
