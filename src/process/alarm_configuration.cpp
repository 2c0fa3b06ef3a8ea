#include "process/alarm_configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "base/nearest.h"
#include "process/configuration.h"

namespace rodeo::process {

using settings::ConfigurationErrors;
using settings::Table;
using settings::where_of;

namespace {

/// The built-in rules, equal to python/rodeo/control/state/rules.py; a test compares the two.
struct BuiltIn {
  std::string_view name;
  bool has_limit;
};
constexpr std::array kBuiltIn = {
    BuiltIn{"back_pressure", false}, BuiltIn{"clock", true},           BuiltIn{"database", false},
    BuiltIn{"dead_time", true},      BuiltIn{"disk", false},           BuiltIn{"disk_time", false},
    BuiltIn{"external", false},      BuiltIn{"file_left_open", false}, BuiltIn{"foreign", false},
    BuiltIn{"host_silent", false},   BuiltIn{"incomplete", true},      BuiltIn{"link", false},
    BuiltIn{"metric_gone", false},   BuiltIn{"no_data", false},        BuiltIn{"no_triggers", false},
    BuiltIn{"out_of_step", false},   BuiltIn{"overdue", false},        BuiltIn{"partial", true},
    BuiltIn{"process_ended", false}, BuiltIn{"process_failed", false}, BuiltIn{"process_given_up", false},
    BuiltIn{"process_lost", false},  BuiltIn{"process_status", false}, BuiltIn{"stall", false},
    BuiltIn{"temperature", true},
};

/// Values of the whole system, and values of one process besides those in its status.
const std::vector<std::string> kOfSystem = {"bytes_in_per_second",
                                            "bytes_written",
                                            "bytes_written_per_second",
                                            "dead_time_fraction",
                                            "disk_free_bytes",
                                            "disk_seconds_left",
                                            "events",
                                            "incomplete",
                                            "incomplete_ppm",
                                            "offered_rate_hz",
                                            "partial_ppm",
                                            "trigger_rate_hz"};
const std::vector<std::string> kOfProcess = {"cpu", "events", "fill", "incomplete", "rate_hz", "rss_bytes"};

class AlarmCheck {
 public:
  AlarmCheck(const Table& control, const std::set<std::string>& classes) : control_(control), classes_(classes) {}

  ConfigurationErrors all() {
    for (const Table& table : control_.tables("external")) check_external(table);
    for (const Table& table : control_.tables("alarm")) check_alarm(table);
    return std::move(errors_);
  }

 private:
  void wrong(const Table& table, const char* key, std::string what, std::string next = {}) {
    errors_.push_back({"control.bad_alarm", std::move(what), where_of(table, key), std::move(next)});
  }

  void check_external(const Table& table) {
    const ExternalKeys one = external_settings().read(table.parameters());
    refuse_other_than_plain_name(table, "name", errors_);
    if (classes_.contains(one.name) || !externals_.insert(one.name).second)
      wrong(table, "name", fmt::format("another part of the system is already called `{}`", one.name));
    if (!one.address.starts_with("http://") && !one.address.starts_with("https://"))
      wrong(table, "address", fmt::format("`{}` is not an HTTP address", one.address), "http://HOST:PORT/metrics");
  }

  void check_alarm(const Table& table) {
    const AlarmKeys one = alarm_settings().read(table.parameters());
    refuse_other_than_plain_name(table, "name", errors_);
    const auto [taken, is_new] = names_.emplace(one.name, where_of(table, "name"));
    if (!is_new)
      wrong(table, "name", fmt::format("two alarms are called `{}`", one.name), "the other stands at " + taken->second);
    const auto* const built_in = std::ranges::find(kBuiltIn, std::string_view(one.name), &BuiltIn::name);
    if (built_in != kBuiltIn.end()) {
      check_built_in(table, *built_in);
    } else {
      check_own(table, one);
    }
    if (one.times > one.of_last)
      wrong(table, "times", fmt::format("{} of the last {} looks", one.times, one.of_last), "times is at most of_last");
    if (one.of_last > 0 && table.given("hold"))
      wrong(table, "hold", "hold and of_last both set how long the alarm condition must last", "leave one out");
  }

  void check_built_in(const Table& table, const BuiltIn& rule) {
    for (const char* key : {"of", "value", "per_second", "comparison", "when", "gone", "text"}) {
      if (table.given(key))
        wrong(table, key, fmt::format("`{}` is a built-in rule, and its `{}` is known", rule.name, key),
              "leave it out, or give the rule another name");
    }
    if (!rule.has_limit && table.given("limit"))
      wrong(table, "limit", fmt::format("the built-in rule `{}` has no limit", rule.name),
            fmt::format("rodeo control alarms --rules; for the disk: control.disk_warn"));
  }

  void check_own(const Table& table, const AlarmKeys& one) {
    std::vector<std::string> known;
    for (const BuiltIn& rule : kBuiltIn) known.emplace_back(rule.name);
    if (!table.given("value") || one.value.empty())
      return wrong(table, "name", fmt::format("the alarm `{}` has no value, and no built-in rule has this name", one.name),
                   base::did_you_mean(one.name, known));
    if (!table.given("limit")) wrong(table, "name", fmt::format("the alarm `{}` has no limit", one.name), "limit = NUMBER");
    if (one.of.empty()) return check_known(table, one.value, kOfSystem, "the system");
    if (externals_.contains(one.of)) return;  // Its values are known only when it answers.
    if (!classes_.contains(one.of)) {
      std::vector<std::string> names(classes_.begin(), classes_.end());
      names.insert(names.end(), externals_.begin(), externals_.end());
      return wrong(table, "of", fmt::format("there is no class of processes and no external program `{}`", one.of),
                   base::did_you_mean(one.of, names));
    }
    // Only the process itself knows the paths in its status.
    if (one.value.find('.') == std::string::npos) check_known(table, one.value, kOfProcess, "a process");
  }

  void check_known(const Table& table, const std::string& value, const std::vector<std::string>& known, const char* whose) {
    if (std::ranges::find(known, value) != known.end()) return;
    std::string next = base::did_you_mean(value, known);
    if (next.empty()) {
      for (const std::string& one : known) next += (next.empty() ? "one of " : ", ") + one;
      next += "; of a class also a path into its status: chunks.lost.late";
    }
    wrong(table, "value", fmt::format("`{}` is not a number of {}", value, whose), std::move(next));
  }

  const Table& control_;
  const std::set<std::string>& classes_;
  std::set<std::string> externals_;
  std::map<std::string, std::string> names_;  // names of alarms, and their places in the file
  ConfigurationErrors errors_;
};

}  // namespace

const Settings<AlarmKeys>& alarm_settings() {
  using A = AlarmKeys;
  static const Settings<A> settings{
      setting(&A::name, "name",
              "Name of the rule. The name of a built-in rule changes that rule: `rodeo control alarms --rules` lists them.",
              {.required = true}),
      setting(&A::of, "of",
              "Class of processes, or external program, that has the value; each process alone. Empty: the system."),
      setting(&A::value, "value",
              "The value to compare. System and processes: a number of the page. Class: also a path into its status, "
              "with * for each: queue_fill.*. External program: a metric, with labels if several share the name."),
      setting(&A::per_second, "per_second", "For counters: compare the growth per second instead of the value."),
      setting(&A::comparison, "comparison", "The alarm is raised if this comparison of the value with `limit` is true.",
              {.choices = {">", ">=", "<", "<=", "==", "!="}}),
      setting(&A::limit, "limit", "The number to compare the value with."),
      setting(&A::hold, "hold", "How long the comparison must be true without a break. Checked once a second.",
              {.minimum = 0, .maximum = 3.6e12}),
      setting(&A::times, "times", "Instead of `hold`: true in this many of the last `of_last` checks. 0: in each.",
              {.minimum = 0, .maximum = 3600}),
      setting(&A::of_last, "of_last", "Instead of `hold`: the number of checks, one a second. 0: `hold` applies.",
              {.minimum = 0, .maximum = 3600}),
      setting(&A::priority, "priority", "alarm: no run starts until a user has acknowledged it. warning: runs start.",
              {.choices = {"alarm", "warning"}}),
      setting(&A::text, "text", "The text to show; {process}, {value} and {limit} are replaced. Empty: the comparison."),
      setting(&A::todo, "do", "What the reader of the alarm shall do."),
      setting(&A::when, "when", "running: check while a run is open and triggers are not held.",
              {.choices = {"running", "always"}}),
      setting(&A::gone, "gone", "What to raise when a value that existed before is gone.",
              {.choices = {"alarm", "warning", "nothing"}}),
      setting(&A::enabled, "enabled", "false: the rule is off."),
  };
  return settings;
}

const Settings<ExternalKeys>& external_settings() {
  using E = ExternalKeys;
  static const Settings<E> settings{
      setting(&E::name, "name", "Name of the program in alarms.", {.required = true}),
      setting(&E::address, "address", "http://HOST:PORT/PATH that returns the values.", {.required = true}),
      setting(&E::format, "format",
              "prometheus: the text format of exporters. json: an object; a path names a number, as crate.voltage.",
              {.choices = {"prometheus", "json"}}),
      setting(&E::every, "every", "Time between two requests.", {.minimum = 1e9, .maximum = 3.6e12}),
      setting(&E::timeout, "timeout", "How long an answer may take.", {.minimum = 1e8, .maximum = 6e10}),
      setting(&E::keep, "keep", "Metrics to keep with each run: at its start, each minute, and at its end."),
  };
  return settings;
}

std::vector<settings::TableDeclaration> alarm_tables() {
  using Form = settings::TableDeclaration::Form;
  return {{.path = "control.alarm",
           .help = "A rule: when a value is an alarm, and what to do then.",
           .keys = alarm_settings().keys(),
           .form = Form::array},
          {.path = "control.external",
           .help = "An external program that reports values over HTTP: slow control, high voltage, any exporter.",
           .keys = external_settings().keys(),
           .form = Form::array}};
}

ConfigurationErrors check_alarms(const Table& control, const std::set<std::string>& classes) {
  return AlarmCheck(control, classes).all();
}

}  // namespace rodeo::process
