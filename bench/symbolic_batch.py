#!/usr/bin/env python3
"""Makes the batch of a model symbolic: symbolic_batch.py IN.onnx OUT.onnx

The first dim of every input that had 1 there becomes the symbol `batch`; shapes that the file states for other values are
left out, for they hold the old one. Only right for models whose nodes do not hold the batch as a number (a Reshape to
1 x ... would); ONNX Runtime or `dnnopt verify --dim batch=2` tells. Needs PyPI's `onnx`. Data outside the file stays there.
"""
import sys

import onnx


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    model = onnx.load(sys.argv[1], load_external_data=False)
    initializers = {one.name for one in model.graph.initializer}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name not in initializers and dims and dims[0].dim_value == 1:
            dims[0].dim_param = "batch"
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    onnx.save(model, sys.argv[2])


if __name__ == "__main__":
    main()
