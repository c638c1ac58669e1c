"""Calls of the ops in ops/image/non_max_suppression.cc."""


def calls(add):
    boxes = [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [1, 11.1, 0, 10.1],
             [0, 100, 1, 101], [3, 3, 3, 3]]
    scores = [0.9, 0.75, 0.6, 0.95, 0.5, 0.3, 0.3]
    for limit in [0, 1, 3, 30]:
        for iou in [0.0, 0.5, 1.0]:
            add("NonMaxSuppression", [f32(boxes), f32(scores), i32(limit)], iou_threshold=iou)
            for array in [f32, f16]:
                b, s = array(boxes), array(scores)
                add("NonMaxSuppressionV2", [b, s, i32(limit), array(iou)])
                for score in [0.0, 0.55]:
                    add("NonMaxSuppressionV3", [b, s, i32(limit), array(iou), array(score)])
                    for pad in [False, True]:
                        add("NonMaxSuppressionV4", [b, s, i32(limit), array(iou), array(score)],
                            pad_to_max_output_size=pad)
                        if array is f32:
                            for sigma in [0.0, 0.5]:
                                add("NonMaxSuppressionV5",
                                    [b, s, i32(limit), array(iou), array(score), array(sigma)],
                                    pad_to_max_output_size=pad, ulps=8)
    overlaps = random(tf.float32, (6, 6), 0, 1)
    for limit in [0, 2, 6]:
        for threshold in [0.2, 0.7]:
            add("NonMaxSuppressionWithOverlaps",
                [overlaps, f32(scores[:6]), i32(limit), f32(threshold), f32(0.4)])
    many = random(tf.float32, (2, 12, 3, 4), -0.2, 1.2)
    class_scores = random(tf.float32, (2, 12, 3), 0, 1)
    for q in [1, 3]:
        for per_class, total in [(2, 5), (20, 4), (3, 30)]:
            for pad in [False, True]:
                for clip in [False, True]:
                    add("CombinedNonMaxSuppression",
                        [many[:, :, :q], class_scores, i32(per_class), i32(total), f32(0.3), f32(0.2)],
                        pad_per_class=pad, clip_boxes=clip)
    add("NonMaxSuppression", [f32(boxes), f32(scores), i32(-1)])
    add("NonMaxSuppression", [f32(boxes), f32(scores[:3]), i32(1)])
    add("NonMaxSuppression", [f32([[1, 2, 3]]), f32([1]), i32(1)])
    add("NonMaxSuppressionV2", [f32(boxes), f32(scores), i32(1), f32(1.5)])
    add("NonMaxSuppressionV2", [np.zeros((0, 4), np.float32), f32([]), i32(1), f32(0.5)])
    add("CombinedNonMaxSuppression",
        [many, class_scores, i32(0), i32(1), f32(0.3), f32(0.2)])
