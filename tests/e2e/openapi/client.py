"""What a program that uses the generated client writes; it prints what it has read. Arguments: address, token or empty."""

import json
import sys

from heapray_client import AuthenticatedClient, Client
from heapray_client.api.profiler import heapray_stats, heapray_status
from heapray_client.api.reports import heapray_reports
from heapray_client.models import HeaprayStatsFormat as StatsFormat
from heapray_client.models import CallSite, KeptReport, Statistics, Status

address, token = sys.argv[1:]
client = AuthenticatedClient(address, token) if token else Client(address)

status = heapray_status.sync(client=client)
assert isinstance(status, Status), status
assert isinstance(status.live.bytes_, int), status

stats = heapray_stats.sync(client=client, format_=StatsFormat.JSON)
assert isinstance(stats, Statistics), stats
line = stats.heapray.top_live_own_lines[0]
assert isinstance(line.bytes_, int), line

reports = heapray_reports.sync(client=client)
assert reports and all(isinstance(report, KeptReport) for report in reports), reports
largest = [report.largest for report in reports if isinstance(report.largest, CallSite)]

print(json.dumps({"pid": status.pid, "leak": largest[0].file, "largest": line.location}))
