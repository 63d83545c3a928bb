#!/usr/bin/env python3
"""Renders an HTML report of dnnopt in headless Chromium and checks what its script has drawn.

usage: check_html.py REPORT.html [SCREENSHOT.png [PHONE.png]]
Exits 0 when bars, axes, tooltips and tables exist and no script failed, else 1.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile


def chromium(folder, *args):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("no Chromium found")
    return subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                           f"--user-data-dir={folder}", "--virtual-time-budget=4000", "--enable-logging=stderr", *args],
                          capture_output=True, text=True, timeout=120)


def main():
    page = "file://" + os.path.abspath(sys.argv[1])
    with open(sys.argv[1], encoding="utf-8") as f:
        text = f.read()
    faults = []
    outside = re.findall(r"""(?:src|href)\s*=\s*["']?https?://[^"'> ]+""", text)
    if outside:
        faults.append(f"loads from a network: {outside[:3]}")
    with tempfile.TemporaryDirectory() as folder:
        for name, size in {"desktop": "1200,900", "phone": "390,844"}.items():
            result = chromium(folder, f"--window-size={size}", "--dump-dom", page)
            dom = result.stdout
            for error in re.findall(r"CONSOLE.*(?:Uncaught|Error).*", result.stderr):
                faults.append(f"{name}: {error}")
            if 'data-ready="1"' not in dom:
                faults.append(f"{name}: the script did not end")
            counts = {
                "timeline bars": len(re.findall(r'<rect[^>]*class="bar[^>]*data-tip=', dom)),
                "axis lines": len(re.findall(r'<line[^>]*class="axis"', dom)),
                "tick labels": len(re.findall(r'class="[^"]*tick"', dom)),
                "operator bars": len(re.findall(r'<div class="bar"', dom)),
                "tooltips": len(re.findall(r"data-tip=", dom)),
                "kernel rows": len(re.findall(r"<tr>", dom)),
            }
            for what, count in counts.items():
                if count < 2:
                    faults.append(f"{name}: {count} {what}")
            print(f"{name}: " + ", ".join(f"{v} {k}" for k, v in counts.items()))
        for picture, size in zip(sys.argv[2:4], ("1200,2600", "390,3600")):
            chromium(folder, f"--window-size={size}", f"--screenshot={os.path.abspath(picture)}", page)
    print("; ".join(faults) or "drawn without faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
