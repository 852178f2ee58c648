"""The PyTorch side of torch_weights_test.cc.

For every weights file <model>.safetensors of a folder: loads it with strict=True into PyTorch's own module, writes what
the module makes of pixels.safetensors, in inference, to <model>.output, and writes the module's own
state_dict, with every float parameter halved, to <model>.torch.
"""

import pathlib
import sys

import safetensors.torch
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
import peer_models  # noqa: E402


def main(folder, side):
    torch.set_num_threads(1)
    pixels = safetensors.torch.load_file(folder / "pixels.safetensors")["pixels"]
    for path in sorted(folder.glob("*.safetensors")):
        name = path.stem
        if name == "pixels":
            continue
        module = peer_models.make(name, 0, side)
        module.load_state_dict(safetensors.torch.load_file(path), strict=True)
        with torch.no_grad():
            output = module.eval()(peer_models.normalize(name, pixels))
            safetensors.torch.save_file({"output": output}, folder / f"{name}.output")
            for parameter in module.parameters():
                parameter /= 2
        safetensors.torch.save_file(module.state_dict(), folder / f"{name}.torch")


main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
