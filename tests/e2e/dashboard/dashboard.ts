// The type of deploy/grafana/heapray.json, from the types that Grafana publishes. `test_deploy.py` writes the file as a
// constant of type `Checked`, so that the compiler finds unknown and missing properties and values that are not allowed.

import type {
  AnnotationQuery,
  Dashboard,
  DataSourceRef,
  FieldConfigSource,
  GraphFieldConfig,
  Panel,
  RowPanel,
} from "@grafana/schema";
import type { Options as BarGauge } from "@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen";
import type { Options as Stat } from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type { Options as TimeSeries } from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

/** The same with the values of enumerations, which is what JSON has, in the place of their names. */
type Plain<T> = T extends string
  ? `${T}`
  : T extends number
    ? `${T}` extends `${infer N extends number}`
      ? N
      : T
    : T extends Array<infer Item>
      ? Plain<Item>[]
      : T extends object
        ? { [Key in keyof T]: Plain<T[Key]> }
        : T;

/** Query of a panel: what Grafana's Prometheus data source reads. */
interface Query {
  refId: string;
  datasource: DataSourceRef;
  expr: string;
  legendFormat: string;
  editorMode: "code";
  range: boolean;
  instant: boolean;
}

/** Properties of an annotation that only the Prometheus data source has. */
interface PrometheusAnnotation extends AnnotationQuery {
  target?: { refId: string; expr: string; interval: string };
  useValueForTime?: boolean;
  titleFormat?: string;
  textFormat?: string;
  tagKeys?: string;
}

interface Link {
  title: string;
  url: string;
  targetBlank: boolean;
}

/** The names of units that the dashboard uses, since Grafana takes any text for one. */
type Unit = "none" | "bytes" | "Bps" | "ops" | "percentunit" | "s" | "short" | "dateTimeFromNow";

type Fields<Custom> = Omit<FieldConfigSource, "defaults"> & {
  defaults: Omit<FieldConfigSource["defaults"], "custom" | "links" | "unit"> & {
    custom?: Custom;
    links?: Link[];
    unit: Unit;
  };
};

type Of<Kind, Options, Custom> = Omit<Panel, "type" | "options" | "fieldConfig" | "targets"> &
  Required<Pick<Panel, "id" | "title" | "description" | "gridPos" | "datasource">> & {
    type: Kind;
    options: Options;
    fieldConfig: Fields<Custom>;
    targets: Query[];
  };

type AnyPanel =
  | Of<"timeseries", TimeSeries, GraphFieldConfig>
  | Of<"stat", Stat, never>
  | Of<"bargauge", BarGauge, never>
  | RowPanel;

export type Checked = Plain<
  Omit<Dashboard, "panels" | "annotations"> & {
    panels: AnyPanel[];
    annotations: { list: PrometheusAnnotation[] };
  }
>;
