"""Processes that share one cache folder and are killed while they write it.

usage: load.py LOAD MODEL.onnx [--rounds N] [--seed N]

Each round starts two processes on one folder that is empty or what the rounds before left, and kills one of them (SIGKILL)
after a random time up to the length of a whole run. The other one must end well, and so must one more process on the folder
afterwards: right results, no error, the cache read or told to be damaged. Exit status 1 where one does not.
"""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import time


def command(chosen, folder):
    return [chosen.load, chosen.model, "--sessions", "2", "--seconds", "0", "--cache", str(folder)]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("load")
    arguments.add_argument("model")
    arguments.add_argument("--rounds", type=int, default=30)
    arguments.add_argument("--seed", type=int, default=1)
    chosen = arguments.parse_args()
    chance = random.Random(chosen.seed)
    faults = killed = 0
    with tempfile.TemporaryDirectory() as name:
        begin = time.monotonic()
        subprocess.run(command(chosen, pathlib.Path(name) / "first"), check=True, stdout=subprocess.DEVNULL)
        whole = time.monotonic() - begin
        for round_ in range(chosen.rounds):
            folder = pathlib.Path(name) / f"cache_{round_ // 3}"
            pair = [subprocess.Popen(command(chosen, folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                    for _ in range(2)]
            time.sleep(chance.uniform(0, 2 * whole))
            if pair[0].poll() is None:
                pair[0].kill()
                killed += 1
            text, _ = pair[1].communicate()
            pair[0].communicate()
            after = subprocess.run(command(chosen, folder), capture_output=True, text=True)
            for what, status, said in (("beside", pair[1].returncode, text), ("after", after.returncode, after.stdout + after.stderr)):
                if status != 0:
                    faults += 1
                    print(f"FAULT round {round_}: the process {what} a killed one ends with {status}: {said[-500:]}")
    print(f"{chosen.rounds} rounds, {killed} processes killed, {faults} faults; seed {chosen.seed}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
