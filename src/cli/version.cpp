// `rodeo version`: the version of this binary, and the kernels that it chose on this CPU.
#include "base/cpu.h"
#include "cli/revision.h"
#include "cli/verbs.h"
#include "rodeo/plugin.h"

namespace rodeo::cli {

void add_version(Command& root) {
  struct Options {
    OutputFormat format = OutputFormat::table;
  };
  auto options = std::make_shared<Options>();
  Command& version = root.verb("version", "Shows version, revision, compiler, plug-in ABI and the CPU features in use");
  version.example("rodeo version", "include this in a bug report").example("rodeo version -o json", "for programs");
  version.output(options->format);
  version.run([options]() -> Result<ExitCode> {
    Properties properties;
    properties.add("version", "version", Json(RODEO_VERSION));
    properties.add("revision", "revision", Json(RODEO_REVISION));
    properties.add("compiler", "compiler", Json(RODEO_COMPILER));
    properties.add("build type", "build_type", Json(RODEO_BUILD_TYPE));
    properties.add("CPU level", "cpu_level", Json(base::cpu_level_name(base::cpu_level())));
    properties.add("plug-in ABI", "plugin_abi", Json(kPluginAbi));
    properties.print(options->format);
    return ExitCode::done;
  });
}

}  // namespace rodeo::cli
