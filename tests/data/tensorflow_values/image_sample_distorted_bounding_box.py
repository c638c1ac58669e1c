"""Calls of the ops in ops/image/sample_distorted_bounding_box.cc."""


def calls(add):
    boxes = f32([[[0.1, 0.2, 0.5, 0.6], [0.5, 0.5, 0.9, 1.0]]])
    none = np.zeros((1, 0, 4), np.float32)
    for seed in range(1, 12):
        add("SampleDistortedBoundingBox", [i32([60, 40, 3]), boxes], seed=seed, seed2=7)
        add("SampleDistortedBoundingBox", [i64([600, 777, 3]), boxes], seed=seed, seed2=7,
            min_object_covered=0.5, aspect_ratio_range=[0.5, 2.0], area_range=[0.3, 0.9])
        add("SampleDistortedBoundingBoxV2", [i16([33, 70, 1]), none, f32(0.2)], seed=3, seed2=seed,
            use_image_if_no_bounding_boxes=True)
        add("SampleDistortedBoundingBoxV2", [u8([200, 10, 1]), boxes, f32(1.0)], seed=3, seed2=seed,
            max_attempts=3)
    add("SampleDistortedBoundingBox", [i32([60, 40, 3]), none], seed=1)
    add("SampleDistortedBoundingBox", [i32([60, 40]), boxes], seed=1)
    add("SampleDistortedBoundingBox", [i32([-60, 40, 3]), boxes], seed=1)
    add("SampleDistortedBoundingBox", [i32([60, 40, 3]), f32([[[0, 0, 2, 1]]])], seed=1)
    add("SampleDistortedBoundingBox", [i32([60, 40, 3]), boxes], seed=1, area_range=[0.0, 1.0])
    add("SampleDistortedBoundingBox", [i32([60, 40, 3]), boxes], seed=1, max_attempts=0)
