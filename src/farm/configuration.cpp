#include "farm/configuration.h"

#include "farm/node/configuration.h"
#include "farm/recorder/configuration.h"
#include "farm/supervisor/configuration.h"
#include "process/configuration.h"

namespace rodeo::farm {

std::vector<settings::TableDeclaration> farm_tables() {
  return {
      {.path = "farm", .help = "Whole events: the processes that assign, build, filter and record them.", .optional = true},
      {.path = "farm.supervisor",
       .help =
           "The supervisor of a farm, for `rodeo farm supervise`: it assigns events to nodes and has readouts clear them.",
       .keys = supervisor_settings().keys(),
       .optional = true},
      {.path = "farm.supervisor.metrics",
       .help = "Metrics of the supervisor in Prometheus' text format, over HTTP at /metrics.",
       .keys = process::metrics_keys()},
      {.path = "farm.node",
       .help = "A filter node of a farm, for `rodeo farm filter`: it builds whole events, selects them, and sends those "
               "that are kept to a recorder.",
       .keys = node_settings().keys(),
       .optional = true},
      {.path = "farm.node.selection",
       .help = "Decides which events are kept. Each worker has its own.",
       .component = settings::ComponentKind::selection,
       .default_type = "accept"},
      {.path = "farm.node.metrics",
       .help = "Metrics of the node in Prometheus' text format, over HTTP at /metrics.",
       .keys = process::metrics_keys()},
      {.path = "farm.recorder",
       .help = "A recorder of a farm, for `rodeo farm record`: it writes events to files of their streams and acknowledges "
               "what is safe on disk.",
       .keys = recorder_settings().keys(),
       .optional = true},
      {.path = "farm.recorder.target",
       .help = "Target of the recorder's closed files. They are copied, the checksums are compared, and then the files are "
               "removed here.",
       .keys = target_settings().keys()},
      {.path = "farm.recorder.metrics",
       .help = "Metrics of the recorder in Prometheus' text format, over HTTP at /metrics.",
       .keys = process::metrics_keys()}};
}

}  // namespace rodeo::farm
