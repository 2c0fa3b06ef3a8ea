// `rodeo plugin new`: writes a plug-in that builds, passes its test and runs, as a start for the user's own format.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "cli/plugin_template.h"
#include "cli/verbs.h"

namespace rodeo::cli {

namespace {

namespace fs = std::filesystem;

struct PluginNewOptions {
  std::string name;
  std::string directory;
  std::string kind = "detector";
};

constexpr std::pair<std::string_view, PluginKind> kKinds[] = {
    {"detector", PluginKind::detector}, {"input", PluginKind::input}, {"consumer", PluginKind::consumer}};

PluginKind kind_of(const PluginNewOptions& options) {
  return std::ranges::find(kKinds, options.kind, &std::pair<std::string_view, PluginKind>::first)->second;
}

std::string with_name(std::string_view text, std::string_view name) {
  static constexpr std::string_view kPlaceholder = "__NAME__";
  std::string out;
  while (!text.empty()) {
    const std::size_t at = std::min(text.find(kPlaceholder), text.size());
    out += text.substr(0, at);
    if (at == text.size()) break;
    out += name;
    text.remove_prefix(at + kPlaceholder.size());
  }
  return out;
}

/// Names already taken by libraries and targets: of Rodeo, and of every CMake build.
constexpr std::string_view kTaken[] = {"rodeo", "all", "clean", "depend", "help", "install", "package", "test"};

Result<ExitCode> write_plugin(const PluginNewOptions& options) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  const std::string& name = options.name;
  if (name.empty() || name.front() < 'a' || name.front() > 'z' || !std::ranges::all_of(name, allowed)) {
    return value_error(fmt::format("rodeo plugin new: \"{}\" cannot be the name of a plug-in", name),
                       "names are snake_case: a small letter, then small letters, digits and _");
  }
  if (std::ranges::find(kTaken, name) != std::end(kTaken)) {
    return value_error(fmt::format("rodeo plugin new: \"{}\" has another meaning in Rodeo or in CMake", name),
                       fmt::format("call it {0}_detector, for example", name));
  }
  const fs::path directory = options.directory.empty() ? fs::path(name) : fs::path(options.directory);
  std::error_code failure;
  if (fs::exists(directory, failure)) {
    return std::unexpected(Error{
        "cli.exists", fmt::format("{} exists already", directory.string()), {}, "choose another name, or --directory"});
  }
  // After a failure all new files are removed: otherwise the next try would be refused.
  fs::path made = fs::absolute(directory).lexically_normal();
  if (!made.has_filename()) made = made.parent_path();
  while (made.has_parent_path() && !fs::exists(made.parent_path(), failure)) made = made.parent_path();
  const auto undo = [&](const fs::path& path, const std::string& why) {
    std::error_code ignored;
    fs::remove_all(made, ignored);
    return std::unexpected(
        Error{"cli.output", fmt::format("cannot write {}: {}", path.string(), why), {}, "all new files were removed"});
  };
  fs::create_directories(directory, failure);
  if (failure) return undo(directory, failure.message());
  std::string written;
  for (const TemplateFile& file : plugin_template(kind_of(options))) {
    const fs::path path = directory / with_name(file.name, name);
    std::ofstream out(path, std::ios::binary);
    out << with_name(file.text, name);
    out.close();
    if (!out) return undo(path, std::strerror(errno));
    written += path.string() + "\n";
  }
  print_folded(written);
  fmt::print(stderr,
             "next: cd {} && cmake -S . -B build && cmake --build build && ctest --test-dir build    (see README.md)\n",
             directory.string());
  return ExitCode::done;
}

}  // namespace

void add_plugin_new(Command& plugin) {
  auto options = std::make_shared<PluginNewOptions>();
  Command& verb = plugin.verb("new", "Writes a plug-in that builds, with test, README and configuration");
  verb.example("rodeo plugin new my_detector", "makes my_detector/ with a complete start")
      .example("rodeo plugin new my_front_end --kind input", "an input for a front end that sends datagrams by UDP")
      .example("rodeo plugin new my_sink --kind consumer", "a consumer that sends fragments by TCP");
  verb.option("NAME", options->name, "Name of the plug-in, snake_case").required();
  verb.choice("--kind", options->kind, {"detector", "input", "consumer"},
              "detector: decodes chunks; input: receives chunks by UDP and decodes them; consumer: sends fragments by TCP");
  verb.option("--directory", options->directory, "Directory of the plug-in; must not exist (default: NAME)")
      .value_name("DIR");
  verb.run([options] { return write_plugin(*options); });
}

}  // namespace rodeo::cli
