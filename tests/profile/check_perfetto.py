#!/usr/bin/env python3
"""Decodes a Perfetto trace written by dnnopt, loads it into SQLite and compares it with the CSV of the same profile.

usage: check_perfetto.py TRACE.perfetto-trace PROFILE.csv
Needs PyPI's `perfetto`. Exits 0 when kernel count, order, durations, clock snapshots and flow numbers agree, else 1.
"""
import csv
import sqlite3
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

HOST, DEVICE = 3, 128
DEVICE_KINDS = {"kernel", "copy", "fill", "upload", "download", "map"}


def load(path, db):
    trace = pb.Trace()
    with open(path, "rb") as f:
        trace.ParseFromString(f.read())
    db.executescript("""
        create table track(uuid integer primary key, parent integer, name text);
        create table slice(id integer primary key, track integer, clock integer, begin integer, end integer,
                           name text, category text, flow_out integer, flow_in integer);
        create table snapshot(host integer, device integer);
        create table counter(track integer, at integer, value integer);""")
    open_slices = {}
    for packet in trace.packet:
        if packet.HasField("clock_snapshot"):
            clocks = {c.clock_id: c.timestamp for c in packet.clock_snapshot.clocks}
            db.execute("insert into snapshot values(?,?)", (clocks[HOST], clocks[DEVICE]))
        elif packet.HasField("track_descriptor"):
            d = packet.track_descriptor
            db.execute("insert into track values(?,?,?)",
                       (d.uuid, d.parent_uuid, d.name or d.process.process_name))
        elif packet.HasField("track_event"):
            e = packet.track_event
            if e.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
                key = db.execute(
                    "insert into slice(track,clock,begin,name,category,flow_out,flow_in) values(?,?,?,?,?,?,?)",
                    (e.track_uuid, packet.timestamp_clock_id, packet.timestamp, e.name, e.categories[0],
                     e.flow_ids[0] if e.flow_ids else None,
                     e.terminating_flow_ids[0] if e.terminating_flow_ids else None)).lastrowid
                assert e.track_uuid not in open_slices, "slices of one track overlap"
                open_slices[e.track_uuid] = key
            elif e.type == pb.TrackEvent.TYPE_SLICE_END:
                db.execute("update slice set end=? where id=?", (packet.timestamp, open_slices.pop(e.track_uuid)))
            elif e.type == pb.TrackEvent.TYPE_COUNTER:
                db.execute("insert into counter values(?,?,?)", (e.track_uuid, packet.timestamp, e.counter_value))
    assert not open_slices, "slices that never end"


def main():
    db = sqlite3.connect(":memory:")
    load(sys.argv[1], db)
    with open(sys.argv[2], newline="") as f:
        rows = list(csv.DictReader(f))
    faults = []
    expected = [r for r in rows if r["kind"] in DEVICE_KINDS]
    found = db.execute("select name,category,begin,end,flow_in from slice where clock=? order by id", (DEVICE,)).fetchall()
    if len(found) != len(expected):
        faults.append(f"{len(found)} device slices, {len(expected)} rows")
    for row, (name, category, begin, end, flow) in zip(expected, found):
        want = (row["name"], row["kind"], int(row["device_start_ns"]), int(row["device_end_ns"]), rows.index(row) + 1)
        if (name, category, begin, end, flow) != want:
            faults.append(f"{(name, category, begin, end, flow)} is not {want}")
    starts = {f for f, in db.execute("select flow_out from slice where flow_out is not null")}
    ends = {f for f, in db.execute("select flow_in from slice where flow_in is not null")}
    if starts != ends or len(starts) != len(expected):
        faults.append(f"flows: {len(starts)} begin, {len(ends)} end, {len(expected)} commands")
    calls = db.execute("select count(*) from slice join track on track=uuid where track.name='calls'").fetchone()[0]
    if calls != len(rows):
        faults.append(f"{calls} host calls, {len(rows)} rows")
    # A snapshot maps the device's stamps onto the CSV's host times, up to the origin that all rows share.
    snapshots = db.execute("select host,device from snapshot order by device").fetchall()
    if len(snapshots) < len({r["run"] for r in expected}):
        faults.append(f"{len(snapshots)} clock snapshots")
    origins = []
    for row in expected:
        device = int(row["device_start_ns"])
        before = [s for s in snapshots if s[1] <= device] or snapshots[:1]
        host = before[-1][0] + device - before[-1][1]
        origins.append(host - float(row["start_us"]) * 1000)
    spread = max(origins) - min(origins) if origins else 0
    if spread > 5000:
        faults.append(f"snapshots and CSV differ by up to {spread} ns")
    negative = db.execute("select count(*) from counter where value < 0").fetchone()[0]
    if negative:
        faults.append(f"{negative} negative counters")
    print(f"{len(found)} device slices, {calls} calls, {len(starts)} flows, {len(snapshots)} snapshots, "
          f"mapping within {spread:.0f} ns: {'; '.join(faults) or 'agrees'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
