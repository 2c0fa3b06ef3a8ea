// Selections that see only the event's id. They accept all events or a fraction, after an emulated processing time.
#include <memory>

#include "farm/selection/emulated_time.h"
#include "farm/selection/python_selection.h"
#include "farm/selection/register.h"
#include "formats/draw.h"
#include "rodeo/settings.h"

namespace rodeo::farm {
namespace {

struct SimpleSettings {
  double fraction = 1;
  std::string stream_type = "physics";
  std::string stream_name = "Main";
  EmulatedTime time = {};
};

class SimpleSelection final : public EventSelection {
 public:
  explicit SimpleSelection(SimpleSettings settings) : settings_(std::move(settings)) {}

  Selected select(const WholeEvent& event) override {
    constexpr std::uint64_t kFraction = 0x73;
    settings_.time.spend(event.global_id);
    // A draw is in (0, 1]: fraction 0 accepts no event, 1 accepts all.
    const double drawn = formats::draw::unit(formats::draw::chunk(settings_.time.seed, kFraction, 0, event.global_id));
    if (drawn > settings_.fraction) return Selected::reject();
    return Selected::accept({{.type = settings_.stream_type, .name = settings_.stream_name}});
  }

 private:
  const SimpleSettings settings_;
};

const Settings<SimpleSettings>& accept_settings() {
  using S = SimpleSettings;
  static const Settings<S> settings{
      setting(&S::stream_type, "stream_type", "Type of the stream that events go to."),
      setting(&S::stream_name, "stream", "Name of the stream that events go to."),
      setting(&S::time, emulated_time_settings()),
  };
  return settings;
}

const Settings<SimpleSettings>& fraction_settings() {
  using S = SimpleSettings;
  static const Settings<S> settings{
      setting(&S::fraction, "fraction", "Share of the events that is accepted; the event's id decides.",
              {.minimum = 0, .maximum = 1}),
      setting(&S::stream_type, "stream_type", "Type of the stream that events go to."),
      setting(&S::stream_name, "stream", "Name of the stream that events go to."),
      setting(&S::time, emulated_time_settings()),
  };
  return settings;
}

std::vector<std::string>& python_words() {
  static std::vector<std::string> words{"python3", "-B", "-m"};
  return words;
}

}  // namespace

void set_python_command(std::vector<std::string> words) { python_words() = std::move(words); }
const std::vector<std::string>& python_command() { return python_words(); }

void register_selections(Registry& registry) {
  registry.add_selection({"accept", "Accepts every event.", accept_settings().keys()}, [](const Parameters& parameters) {
    return std::make_unique<SimpleSelection>(accept_settings().read(parameters));
  });
  registry.add_selection(
      {"fraction", "Accepts a fraction of the events, by their ids.", fraction_settings().keys()},
      [](const Parameters& parameters) { return std::make_unique<SimpleSelection>(fraction_settings().read(parameters)); });
  registry.add_selection(
      {"python", "Asks a function in Python, in a process of its own for each worker.", PythonSelection::keys()},
      [](const Parameters& parameters) { return std::make_unique<PythonSelection>(parameters); });
}

}  // namespace rodeo::farm
