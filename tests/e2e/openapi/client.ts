// What a program that uses the generated types writes. It is compiled, not run: a field without its type is an error.
import type { paths } from "./heapray";

type Json<Path extends keyof paths> = paths[Path] extends {
  get: { responses: { 200: { content: { "application/json": infer Body } } } };
}
  ? Body
  : never;

const BASE = "/api/v1/profiler/memray";

async function get<Path extends keyof paths>(path: Path): Promise<Json<Path>> {
  const answer = await fetch(`http://localhost:7000${path}`, { headers: { accept: "application/json" } });
  return (await answer.json()) as Json<Path>;
}

export async function whatLeaks(): Promise<string[]> {
  const status = await get(`${BASE}/status`);
  const since: string | null = status.recording_since;
  const live: number = status.live.bytes;
  const state: "disabled" | "stopped" | "background" | "recording" | "stopping" | "forked" = status.state;

  const stats = await get(`${BASE}/stats`);
  // With `?by=` it would be what each value of a key holds.
  if (!("heapray" in stats)) throw new Error("not the statistics");
  const largest: string | undefined = stats.top_allocations_by_size[0]?.location;
  const calls: number | undefined = stats.allocator_type_distribution["MALLOC"];
  const oldest: (number | null)[] = stats.heapray.top_live_own_lines.map((line) => line.oldest_ms);

  const reports = await get(`${BASE}/reports`);
  const lines: string[] = reports.map((report) => `${report.id} ${report.largest?.file ?? ""}:${report.largest?.line ?? 0}`);

  // @ts-expect-error A number is no text: the types are there, and not `any`.
  const wrong: string = status.live.bytes;
  // @ts-expect-error There is no such field.
  stats.nothing;
  // @ts-expect-error A list, not one.
  reports.id;
  return [state, since ?? "", `${live} ${calls} ${oldest.length}`, largest ?? "", wrong, ...lines];
}
