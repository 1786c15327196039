"""CPython's C: JSON and zlib on eight threads, one after another, so that each run does the same."""

import json
import threading
import zlib

results = []


def work():
    numbers = {str(number): [number] * 10 for number in range(2000)}
    text = json.dumps(numbers)
    assert json.loads(text) == numbers
    results.append(zlib.crc32(zlib.decompress(zlib.compress(text.encode()))))


for _ in range(8):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
print(len(results), set(results))
