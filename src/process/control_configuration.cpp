#include "process/control_configuration.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <ranges>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/nearest.h"
#include "process/alarm_configuration.h"
#include "process/configuration.h"
#include "process/kinds.h"
#include "settings/toml_file.h"

namespace rodeo::process {

using settings::ConfigurationErrors;
using settings::Table;
using settings::where_of;

const Settings<ControlKeys>& control_settings() {
  using C = ControlKeys;
  constexpr SettingRules kDisk{.minimum = 0, .maximum = 1e18, .unit = Unit::bytes};
  constexpr SettingRules kLimit{.minimum = 0, .maximum = 8.64e13};
  static const Settings<C> settings{
      setting(&C::name, "name", "Name of the system, used in the names of its processes, sockets and runs."),
      setting(&C::directory, "directory",
              "Where the system keeps database, journal, logs, a folder for each run. Empty: a folder of its name, beside "
              "this file."),
      setting(&C::database, "database", "The run database, as a URL of SQLAlchemy. Empty: a file of SQLite in `directory`."),
      setting(
          &C::listen, "listen",
          "ADDRESS:PORT of the page; port 0 takes a free one. Loopback only: each user of the page may ask for control."),
      setting(&C::disk_stop_bytes, "disk_stop", "With less free space for files, the room stops the run in order.", kDisk),
      setting(&C::disk_warn_bytes, "disk_warn", "With less free space the room raises an alarm.", kDisk),
      setting(&C::disk_time, "disk_time",
              "If the free space lasts for less than this, the room stops the run in order. 0s: off.", {.maximum = 8.64e13}),
      setting(&C::event_limit, "event_limit", "From the start of a run to the first event of every readout.", kLimit),
      setting(&C::choose_limit, "choose_limit",
              "When an essential process is lost, triggers are held. The crew has this time to choose; then the run is "
              "stopped in order.",
              kLimit),
      setting(&C::patience, "patience",
              "Factor on all times after which silence counts as failure, for slow or busy machines.",
              {.minimum = 0.1, .maximum = 1000}),
      setting(&C::lumi_block, "lumi_block",
              "Length of luminosity blocks in a run (emulator.trigger.lumi_block_period of the process that assigns the "
              "triggers). 0s: only `rodeo control advance` starts the next block.",
              {.maximum = 8.64e13}),
      setting(&C::umask, "umask",
              "Permissions that new files do not get, in octal: data, logs, run database and journal have 0640 "
              "with 0027, directories 0750. Valid for the room, its agents and all processes that they start."),
      setting(&C::group, "group", "Group of `directory` and of all files in it. Empty: the user's group."),
  };
  return settings;
}

const Settings<ProcessClassKeys>& process_class_settings() {
  using P = ProcessClassKeys;
  constexpr SettingRules kLimit{.minimum = 1e8, .maximum = 8.64e13};
  static const Settings<P> settings{
      setting(&P::name, "name", "Name of the class. Its process is NAME; several processes are NAME-1, NAME-2 and so on.",
              {.required = true}),
      setting(&P::kind, "kind",
              "The kind of its processes. supervisor, node, recorder: of a farm (`rodeo farm`). program: any other, run by "
              "`command`; the room starts, watches and ends it, and sends it no requests.",
              {.required = true, .choices = {"readout", "emulator", "router", "supervisor", "node", "recorder", "program"}}),
      setting(&P::configuration, "configuration", "Configuration of its processes, relative to this file."),
      setting(&P::command, "command", "For kind program: the program to run, with its arguments."),
      setting(&P::count, "count", "How many processes.", {.minimum = 1, .maximum = 4096}),
      setting(&P::hosts, "hosts", "Names of the hosts that the processes run on, in turn. Empty: this one."),
      setting(&P::role, "role",
              "When a process is lost: essential: triggers are held. at_least: the same when too few are left. "
              "expendable: the run continues without it.",
              {.choices = {"essential", "at_least", "expendable"}}),
      setting(&P::at_least, "at_least", "For role at_least: how many processes are needed; a number below 1 is a share.",
              {.minimum = 0, .maximum = 4096}),
      setting(&P::restart, "restart",
              "When the room restarts a failed process automatically, at most three times in ten minutes.",
              {.choices = {"never", "between_runs", "in_run"}}),
      setting(&P::set, "set",
              "KEY=VALUE over the configuration. In values {index} (from 0), {number} (from 1), {name}, {system} and "
              "{run_directory} are replaced."),
      setting(&P::order, "order",
              "Classes with a larger number start first and stop last. 0: by kind, receivers of data before their senders.",
              {.minimum = -1000, .maximum = 1000}),
      setting(&P::launch_limit, "launch_limit", "From launch to ready.", kLimit),
      setting(&P::start_limit, "start_limit", "From the order to start to running.", kLimit),
      setting(&P::stop_limit, "stop_limit", "From the order to stop to the end. A slower process is named, not killed.",
              kLimit),
  };
  return settings;
}

const Settings<HostKeys>& host_settings() {
  using H = HostKeys;
  static const Settings<H> settings{
      setting(&H::name, "name", "Name of the host in classes of processes.", {.required = true}),
      setting(&H::launcher, "launcher", "How processes are started there.", {.choices = {"local", "ssh", "slurm"}}),
      setting(&H::address, "address", "Address: for ssh a destination of ssh, for slurm the node. Empty: its name."),
  };
  return settings;
}

std::vector<settings::TableDeclaration> control_tables() {
  using Form = settings::TableDeclaration::Form;
  std::vector<settings::TableDeclaration> tables{
      {.path = "control",
       .help = "A system of processes for `rodeo control`, and when a run is stopped.",
       .keys = control_settings().keys(),
       .optional = true},
      {.path = "control.process",
       .help = "A class of processes of the system.",
       .keys = process_class_settings().keys(),
       .form = Form::array},
      {.path = "control.host",
       .help = "A host that processes run on. `local` is this host and needs no table.",
       .keys = host_settings().keys(),
       .form = Form::array}};
  for (settings::TableDeclaration& more : alarm_tables()) tables.push_back(std::move(more));
  return tables;
}

namespace {

constexpr std::string_view kThisHost = "local";
// Limit of "SYSTEM-CLASS-12", the name of a process: sockets lie in long paths, and the kernel allows 107 characters.
constexpr std::size_t kLongestName = 64;

bool has_table(const settings::RawValue& file, std::string_view path) {
  const settings::RawValue* place = &file;
  for (const auto part : std::views::split(path, '.')) {
    place = place->find(std::string_view(part.begin(), part.end()));
    if (place == nullptr) return false;
  }
  return true;
}

class Check {
 public:
  explicit Check(const Table& control) : control_(control), keys_(control_settings().read(control.parameters())) {}

  ConfigurationErrors all() {
    refuse_other_than_plain_name(control_, "name", errors_);
    check_listen();
    check_umask();
    check_hosts();
    if (control_.tables("process").empty())
      wrong(control_, "name", "a system without processes: there is no [[control.process]]",
            "rodeo explain control.process");
    for (const Table& table : control_.tables("process")) check_class(table);
    for (Error& error : check_alarms(control_, classes_)) errors_.push_back(std::move(error));
    return std::move(errors_);
  }

 private:
  void wrong(const Table& table, const char* key, std::string what, std::string next = {}) {
    errors_.push_back({"control.bad_system", std::move(what), where_of(table, key), std::move(next)});
  }

  void check_listen() {
    const std::size_t colon = keys_.listen.rfind(':');
    std::string host = keys_.listen.substr(0, std::min(colon, keys_.listen.size()));
    const std::string port = colon == std::string::npos ? "" : keys_.listen.substr(colon + 1);
    unsigned number = 0;
    const auto [end, failure] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (port.empty() || failure != std::errc{} || end != port.data() + port.size() || number > 65535) {
      errors_.push_back({"config.bad_value", fmt::format("control.listen: `{}` is not ADDRESS:PORT", keys_.listen),
                         where_of(control_, "listen"), "for example 127.0.0.1:0, which takes a free port"});
      return;
    }
    if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    in_addr four{};
    in6_addr six{};
    const bool loopback = host == "localhost" ||
                          (inet_pton(AF_INET, host.c_str(), &four) == 1 && ntohl(four.s_addr) >> 24 == 127) ||
                          (inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six));
    if (loopback) return;
    errors_.push_back(
        {"control.not_loopback",
         fmt::format("control.listen: `{}` is not a loopback address: other computers could reach the page", host),
         where_of(control_, "listen"), "127.0.0.1:PORT, and `ssh -L` from elsewhere"});
  }

  void check_umask() {
    unsigned mask = 0;
    const char* const end = keys_.umask.data() + keys_.umask.size();
    const auto [last, failure] = std::from_chars(keys_.umask.data(), end, mask, 8);
    if (failure == std::errc{} && last == end && mask <= 0777 && (mask & 0700) == 0) return;
    errors_.push_back({"config.bad_value", fmt::format("control.umask: `{}` is not a umask", keys_.umask),
                       where_of(control_, "umask"), "octal digits that leave its owner all: 0027, 0022, 0077"});
  }

  void check_hosts() {
    known_hosts_ = {std::string(kThisHost)};
    for (const Table& table : control_.tables("host")) {
      const HostKeys host = host_settings().read(table.parameters());
      refuse_other_than_plain_name(table, "name", errors_);
      if (!known_hosts_.insert(host.name).second && host.name != kThisHost)
        wrong(table, "name", fmt::format("two hosts are called `{}`", host.name));
      if (host.name == kThisHost && host.launcher != "local")
        wrong(table, "launcher", "the host `local` is this one, and needs no launcher", "give it another name");
    }
  }

  void check_class(const Table& table) {
    const ProcessClassKeys one = process_class_settings().read(table.parameters());
    refuse_other_than_plain_name(table, "name", errors_);
    classes_.insert(one.name);
    check_names(table, one);
    check_what_it_runs(table, one);
    if (one.kind == "supervisor" && (one.count > 1 || std::exchange(supervisor_, true)))
      wrong(table, one.count > 1 ? "count" : "kind",
            "a system has one supervisor: it tells nodes which readouts and recorders there are",
            "another farm is another system");
    for (const std::string& host : one.hosts) {
      if (known_hosts_.contains(host)) continue;
      const std::string near = base::did_you_mean(host, std::vector<std::string>(known_hosts_.begin(), known_hosts_.end()));
      wrong(table, "hosts", fmt::format("there is no host `{}`", host),
            near.empty() ? "declare it: [[control.host]]" : near);
    }
    for (const std::string& line : one.set) {
      if (line.find('=') == std::string::npos || line.starts_with('='))
        wrong(table, "set", fmt::format("`{}` is not KEY=VALUE", line), "write it like readout.builder.timeout=20ms");
    }
    if (one.role == "at_least" && !(one.at_least > 0 && one.at_least <= one.count))
      wrong(table, "at_least",
            fmt::format("at least {:g} of {}", one.at_least,
                        one.count == 1 ? "1 process" : fmt::format("{} processes", one.count)),
            fmt::format("a number from 1 to {}, or a share below 1", one.count));
    if (one.role != "at_least" && table.given("at_least"))
      wrong(table, "at_least", fmt::format("at_least is for role = \"at_least\", and this one is {}", one.role));
    if (one.restart == "in_run" && one.role == "essential")
      wrong(table, "restart", "an essential process is not restarted in a run: its data are lost",
            "between_runs, or another role");
  }

  void check_names(const Table& table, const ProcessClassKeys& one) {
    const std::string longest = one.count == 1 ? one.name : fmt::format("{}-{}", one.name, one.count);
    if (keys_.name.size() + 1 + longest.size() > kLongestName)
      wrong(table, "name", fmt::format("`{}-{}` is too long for the name of a process", keys_.name, longest),
            fmt::format("both together have at most {} characters", kLongestName));
    for (std::uint32_t number = 1; number <= one.count; ++number) {
      const std::string name = one.count == 1 ? one.name : fmt::format("{}-{}", one.name, number);
      const auto [taken, is_new] = names_.emplace(name, where_of(table, "name"));
      if (is_new) continue;
      wrong(table, "name", fmt::format("two processes would be called `{}`", name),
            fmt::format("the other stands at {}", taken->second));
      return;
    }
  }

  void check_what_it_runs(const Table& table, const ProcessClassKeys& one) {
    if (one.kind == "program") {
      if (one.command.empty() || one.command.front().empty())
        wrong(table, "kind", "a program needs a command", "command = [\"PROGRAM\", \"ARGUMENT\"]");
      if (table.given("configuration"))
        wrong(table, "configuration", "a program has no configuration that Rodeo knows", "name it in its command");
      return;
    }
    if (table.given("command"))
      wrong(table, "command", fmt::format("what a {} runs is known", one.kind), "leave it out, or kind = \"program\"");
    if (!table.given("configuration") || one.configuration.empty())
      return wrong(table, "kind", fmt::format("{} {} needs a configuration", one.kind == "emulator" ? "an" : "a", one.kind),
                   "configuration = \"FILE\"");
    const auto file = settings::read_toml_file(one.configuration);
    if (!file) {
      // An error inside the file names its own place.
      const bool there = file.error().code == "config.syntax";
      errors_.push_back(
          {file.error().code,
           there ? file.error().what
                 : fmt::format("{}.configuration: {}: {}", table.path(), one.configuration.string(), file.error().what),
           there ? file.error().where : where_of(table, "configuration"), file.error().next});
    } else if (const ProcessKind* const kind = find_kind(one.kind); kind != nullptr && !has_table(*file, kind->table)) {
      wrong(table, "configuration", fmt::format("{} has no [{}]", one.configuration.string(), kind->table),
            "name the file that has one, or another kind");
    }
  }

  const Table& control_;
  const ControlKeys keys_;
  std::set<std::string> known_hosts_;
  std::set<std::string> classes_;
  bool supervisor_ = false;
  std::map<std::string, std::string> names_;  // names of processes, and the places of their classes
  ConfigurationErrors errors_;
};

}  // namespace

ConfigurationErrors check_control(const settings::Configuration& configuration) {
  const Table* const control = configuration.table("control");
  return control == nullptr ? ConfigurationErrors{} : Check(*control).all();
}

std::vector<ClassConfiguration> class_configurations(const settings::Configuration& configuration) {
  std::vector<ClassConfiguration> found;
  const Table* const control = configuration.table("control");
  if (control == nullptr) return found;
  const ControlKeys keys = control_settings().read(control->parameters());
  const std::filesystem::path directory = keys.directory.empty() ? std::filesystem::path(keys.name) : keys.directory;
  const std::string folder = (directory / "runs" / "000000").string();
  for (const Table& table : control->tables("process")) {
    const ProcessClassKeys one = process_class_settings().read(table.parameters());
    if (one.configuration.empty()) continue;
    for (std::uint32_t index = 0; index < one.count; ++index) {
      const std::string name = one.count == 1 ? one.name : fmt::format("{}-{}", one.name, index + 1);
      ClassConfiguration its{.process = name, .file = one.configuration, .overrides = one.set};
      for (std::string& line : its.overrides) {
        for (const auto& [place, text] : {std::pair<std::string, std::string>{"{index}", std::to_string(index)},
                                          {"{number}", std::to_string(index + 1)},
                                          {"{name}", name},
                                          {"{system}", keys.name},
                                          {"{run_directory}", folder}}) {
          for (std::size_t at = line.find(place); at != std::string::npos; at = line.find(place, at + text.size()))
            line.replace(at, place.size(), text);
        }
      }
      const bool known = std::ranges::any_of(found, [&](const ClassConfiguration& other) {
        return other.file == its.file && other.overrides == its.overrides;
      });
      if (!known) found.push_back(std::move(its));
    }
  }
  return found;
}

}  // namespace rodeo::process
