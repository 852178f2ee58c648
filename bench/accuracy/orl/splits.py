"""The ten random splits of the ORL faces: 5 photos of each person to train, 5 to test, as folders of classes.

Both sides of the comparison read the same folders, so nothing about the split can differ.
"""

import argparse
import pathlib
import random
import shutil

PHOTOS = 10
TRAINED = 5


def make_split(source: pathlib.Path, number: int, target: pathlib.Path) -> pathlib.Path:
    """Copies split `number` to `<target>/split-<number>/{train,test}/<person>/` and returns that folder."""
    chosen = random.Random(f"orl split {number}")
    root = target / f"split-{number}"
    for person in sorted(p.name for p in source.iterdir() if p.is_dir()):
        train = set(chosen.sample(range(1, PHOTOS + 1), TRAINED))
        for photo in range(1, PHOTOS + 1):
            folder = root / ("train" if photo in train else "test") / person
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / person / f"{photo}.pgm", folder / f"{photo}.pgm")
    return root


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=pathlib.Path, required=True, help="folder with s1 ... s40")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--splits", type=int, default=10)
    arguments = parser.parse_args()
    for number in range(arguments.splits):
        print(make_split(arguments.source, number, arguments.out))


if __name__ == "__main__":
    main()
