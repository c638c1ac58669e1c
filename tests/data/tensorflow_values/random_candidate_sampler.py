"""Calls of candidate samplers and ComputeAccidentalHits, with seeds."""


def calls(add):
    true_classes = i64([[0, 3], [7, 2], [1, 1]])
    near = {"rtol": 3e-6, "atol": 1e-7}
    for seed in [(1, 0), (7, 9), (0, 5)]:
        seeds = {"seed": seed[0], "seed2": seed[1]}
        for unique in [False, True]:
            for sampled, classes in [(5, 8), (8, 8), (1, 1000), (40, 100), (100, 2**40)]:
                attrs = {"num_true": 2, "num_sampled": sampled, "unique": unique, **seeds}
                for op in ["Uniform", "LogUniform"]:
                    add(op + "CandidateSampler", [true_classes], range_max=classes, **attrs, **near)
                if classes < 2**31:
                    for op in ["LearnedUnigram", "ThreadUnsafeUnigram"]:
                        add(op + "CandidateSampler", [true_classes], range_max=classes, **attrs, **near)
            attrs = {"num_true": 2, "unique": unique, **seeds, **near}
            add("AllCandidateSampler", [true_classes], num_sampled=8, **attrs)
            weights = [1, 5, 0.5, 2, 0, 3, 1, 9]
            for distortion in [1.0, 0.75, 0.0]:
                more = {"range_max": 8, "distortion": distortion, "unigrams": [float(w) for w in weights]}
                add("FixedUnigramCandidateSampler", [true_classes], num_sampled=5, **more, **attrs)
            more = {"range_max": 10, "num_reserved_ids": 2, "unigrams": [float(w) for w in weights]}
            add("FixedUnigramCandidateSampler", [true_classes], num_sampled=5, **more, **attrs)
            more = {"range_max": 8, "num_shards": 3, "unigrams": [float(i % 5) for i in range(24)]}
            for shard in [0, 1, 2]:
                add("FixedUnigramCandidateSampler", [true_classes], num_sampled=6, shard=shard, **more, **attrs)
            more["range_max"] = 9
            add("FixedUnigramCandidateSampler", [true_classes], num_sampled=6, num_reserved_ids=2, **more, **attrs)
    base = {"num_true": 2, "num_sampled": 5, "unique": True, "seed": 1}
    for op in ["Uniform", "LogUniform", "LearnedUnigram"]:
        name = op + "CandidateSampler"
        add(name, [true_classes], range_max=4, **base)
        add(name, [true_classes], range_max=7, **base)
        add(name, [i64([[0, -1]])], range_max=9, **base)
        add(name, [i64([[0]])], range_max=9, **base)
        add(name, [i64([0, 1])], range_max=9, **base)
        add(name, [np.zeros([0, 2], np.int64)], range_max=9, **base, **near)
    add("AllCandidateSampler", [true_classes], **base)
    for unigrams in [[], [1.0], [1.0] * 9]:
        add("FixedUnigramCandidateSampler", [true_classes], range_max=8, unigrams=unigrams, **base)

    for candidates in [[3, 5, 1], [7, 7, 0], [9], []]:
        add("ComputeAccidentalHits", [true_classes, i64(candidates)], num_true=2)
    add("ComputeAccidentalHits", [true_classes, i64([1])], num_true=1)
    add("ComputeAccidentalHits", [true_classes, i64([[1]])], num_true=2)
    add("ComputeAccidentalHits", [i64([1, 2]), i64([1])], num_true=2)
    add("ComputeAccidentalHits", [np.zeros([0, 2], np.int64), i64([1])], num_true=2)
