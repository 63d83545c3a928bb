"""Runs random_nets for long, in processes of their own: a crash or a hang costs one case, and is told with its seed.

usage: random_nets.py RANDOM_NETS operators|graphs|mutants [--first SEED] [--count N] [--jobs N] [--stride N] [--slow SECONDS]
                      [--optimized] [FLAGS of random_nets...]

A case is slow by the processor's seconds, which other programs do not lengthen, or by 30 times as many on the clock.
PoCL compiles with -cl-opt-disable, for its optimizer takes more than half of the time; --optimized leaves it on.
Prints each fault with the command that repeats it, and counts at the end; exit status 1 where there is a fault.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import threading
import time


def processor_seconds(process):
    """What a running process and its ended children have used."""
    try:
        with open(f"/proc/{process}/stat") as text:
            words = text.read().rsplit(")", 1)[1].split()
        return sum(int(word) for word in words[11:15]) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0


class Watched:
    """A process whose lines are read as they come."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        self.lines = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def end(self, most):
        """The exit status, or None where no line came for `most` seconds of the processor or 30 times as many in all."""
        seen, used, begin = -1, 0, 0
        while self.process.poll() is None:
            now = processor_seconds(self.process.pid)
            if len(self.lines) != seen:
                seen, used, begin = len(self.lines), now, time.monotonic()
            if now - used > most or time.monotonic() - begin > 30 * most:
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
    arguments.add_argument("--optimized", action="store_true")
    chosen, flags = arguments.parse_known_args()
    command = [chosen.program, chosen.what, *flags]
    with tempfile.TemporaryDirectory() as cache:
        os.environ["POCL_CACHE_DIR"] = cache
        if not chosen.optimized:
            os.environ["POCL_EXTRA_BUILD_FLAGS"] = "-cl-opt-disable"
        return draw(chosen, command)


def draw(chosen, command):
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
    again = ("" if chosen.optimized else "POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable ") + " ".join(command)
    print(f"{counts} in {time.monotonic() - begin:.0f} s, {len(faults)} faults; one again: {again} --count 1 --first SEED")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
