"""Calls of the ops in ops/image/draw_bounding_boxes.cc."""


def calls(add):
    boxes = f32([[[0, 0, 1, 1], [0.2, 0.3, 0.7, 0.9], [-0.5, 0.4, 0.4, 1.5], [0.6, 0.2, 0.1, 0.9],
                  [2, 2, 3, 3]]])
    colors = f32([[0.5, 0.25, 1, 0.75], [1, 0, 0, 1]])
    for array in [f32, f16]:
        for depth in [1, 3, 4]:
            images = array(random(tf.float32, (1, 7, 6, depth), 0, 1))
            add("DrawBoundingBoxes", [images, boxes])
            add("DrawBoundingBoxesV2", [images, boxes, colors])
            add("DrawBoundingBoxesV2", [images, boxes, np.zeros((0, 4), np.float32)])
    add("DrawBoundingBoxes", [np.zeros((1, 2, 2, 2), np.float32), boxes])
    add("DrawBoundingBoxes", [np.zeros((2, 2, 2, 1), np.float32), boxes])
    add("DrawBoundingBoxes", [np.zeros((1, 2, 2, 1), np.float32), f32([[[0, 0, 1]]])])
    add("DrawBoundingBoxesV2", [np.zeros((1, 2, 2, 3), np.float32), boxes, f32([[1, 2]])])
