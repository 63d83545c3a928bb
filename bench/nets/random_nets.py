"""Runs random_nets for long, in processes of their own: a crash or a hang costs one case, and is told with its seed.

usage: random_nets.py RANDOM_NETS operators|graphs|mutants [--first SEED] [--count N] [--jobs N] [--stride N] [--slow SECONDS]
                      [FLAGS of random_nets...]

Prints each fault with the command that repeats it, and counts at the end; exit status 1 where there is a fault.
"""
import argparse
import concurrent.futures
import subprocess
import sys
import threading
import time


class Watched:
    """A process whose lines are read as they come, with the time of the last one."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        self.lines, self.last = [], time.monotonic()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            self.last = time.monotonic()

    def end(self, most):
        """The exit status, or None where no line came for `most` seconds."""
        while self.process.poll() is None:
            if time.monotonic() - self.last > most:
                self.process.kill()
                self.process.wait()
                return None
            time.sleep(0.05)
        self.reader.join()
        return self.process.returncode


def run(command, first, count, batch, slow, faults, counts):
    """All seeds of [first, first + count); goes on behind what crashes or hangs."""
    at = first
    while at < first + count:
        watched = Watched(command + ["--first", str(at), "--count", str(first + count - at), "--batch", str(batch)])
        status = watched.end(slow * batch)
        seen = [line for line in watched.lines if line.startswith("at ")]
        faults += [line[6:] for line in watched.lines if line.startswith("FAULT ")]
        done = [line for line in watched.lines if line.startswith("done ")]
        if done:
            words = done[-1].split()[1:]
            for number, name in zip(words[::2], words[1::2]):
                counts[name] = counts.get(name, 0) + int(number)
            return
        if not seen:
            faults.append(f"seed {at}: {' '.join(watched.lines[-3:])} (exit status {status})")
            return
        bad, size = (int(word) for word in seen[-1].split()[1:3])
        if size == 1:
            how = "takes too long" if status is None else f"ends with status {status}: {' '.join(watched.lines[-2:])}"
            faults.append(f"seed {bad} {how}")
        else:
            run(command, bad, size, 1, slow, faults, counts)
        at = bad + size


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("what")
    arguments.add_argument("--first", type=int, default=1)
    arguments.add_argument("--count", type=int, default=1000)
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--stride", type=int, default=200, help="seeds of one process")
    arguments.add_argument("--batch", type=int, default=8, help="cases of one model")
    arguments.add_argument("--slow", type=float, default=10, help="seconds that a case may take")
    chosen, flags = arguments.parse_known_args()
    command = [chosen.program, chosen.what, *flags]
    faults, counts, begin = [], {}, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        parts = []
        for at in range(chosen.first, chosen.first + chosen.count, chosen.stride):
            size = min(chosen.stride, chosen.first + chosen.count - at)
            own = ([], {})
            parts.append((own, pool.submit(run, command, at, size, chosen.batch, chosen.slow, *own)))
        for (own_faults, own_counts), part in parts:
            part.result()
            for fault in own_faults:
                print("FAULT", fault)
            sys.stdout.flush()
            faults += own_faults
            for name, number in own_counts.items():
                counts[name] = counts.get(name, 0) + number
    print(f"{counts} in {time.monotonic() - begin:.0f} s, {len(faults)} faults; one again: {' '.join(command)} --count 1 --first SEED")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
