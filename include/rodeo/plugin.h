// Plug-ins: shared libraries that add components by name. The default implementations register through the same interface.
//
//   #include <rodeo/plugin.h>
//   RODEO_PLUGIN(registry) {
//     registry.add_extractor({.name = "my_detector", .help = "16-bit L1 id in the first two bytes"}, {.l1id_bits = 16},
//                            &extract);
//   }
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rodeo/builder.h"
#include "rodeo/consumer.h"
#include "rodeo/input.h"
#include "rodeo/parameters.h"
#include "rodeo/selection.h"
#include "rodeo/trigger.h"

namespace rodeo {

/// Changes with every incompatible change of this folder; checked before any call into a plug-in.
inline constexpr std::uint32_t kPluginAbi = 8;

/// The description of a component.
struct ComponentInfo {
  std::string name;            ///< snake_case; `type = "name"` in a configuration
  std::string help;            ///< one sentence
  std::vector<Key> keys = {};  ///< the keys of its table, in addition to `type`
};

/// Factories get the settings as Parameters; that of a builder also gets a BuilderContext.
using InputFactory = std::function<std::unique_ptr<DataInput>(const Parameters&)>;
using BuilderFactory = std::function<std::unique_ptr<FragmentBuilder>(const Parameters&, const BuilderContext&)>;
using ConsumerFactory = std::function<std::unique_ptr<FragmentConsumer>(const Parameters&)>;
using ExtractorFactory = std::function<std::unique_ptr<TriggerExtractor>(const Parameters&)>;
using CheckerFactory = std::function<std::unique_ptr<IntegrityChecker>(const Parameters&)>;
using WorkFactory = std::function<std::unique_ptr<FragmentWork>(const Parameters&)>;         ///< called once per thread
using SelectionFactory = std::function<std::unique_ptr<EventSelection>(const Parameters&)>;  ///< called once per thread

/// Registers components. Factories throw std::runtime_error with one complete sentence if they fail.
class Registry {
 public:
  virtual ~Registry() = default;

  virtual void add_input(ComponentInfo info, InputFactory make) = 0;
  virtual void add_builder(ComponentInfo info, BuilderFactory make) = 0;
  virtual void add_consumer(ComponentInfo info, ConsumerFactory make) = 0;
  virtual void add_extractor(ComponentInfo info, ExtractorFactory make) = 0;
  virtual void add_checker(ComponentInfo info, CheckerFactory make) = 0;
  virtual void add_work(ComponentInfo info, WorkFactory make) = 0;
  virtual void add_restamp(ComponentInfo info, RestampFunction function) = 0;
  virtual void add_selection(ComponentInfo info, SelectionFactory make) = 0;

  /// Registers a plain function that reads one chunk; it is adapted to runs.
  void add_extractor(ComponentInfo info, TriggerFields fields, ExtractFunction function);
  void add_checker(ComponentInfo info, CheckFunction function);
};

namespace detail {

class ExtractorOfFunction final : public TriggerExtractor {
 public:
  ExtractorOfFunction(TriggerFields fields, ExtractFunction function) : fields_(fields), function_(function) {}
  TriggerFields fields() const override { return fields_; }
  std::uint32_t extract(const ChunkRun& run, std::uint32_t first, std::uint32_t n, std::uint32_t* l1ids,
                        std::uint16_t* bcids) override {
    for (std::uint32_t i = 0; i < n; ++i) {
      const TriggerInfo info = function_(run.chunk(first + i));
      if (!info.valid) return i;
      l1ids[i] = info.l1id;
      bcids[i] = info.bcid;
    }
    return n;
  }
  std::uint8_t trigger_type(std::span<const std::byte> chunk) override { return function_(chunk).trigger_type; }

 private:
  TriggerFields fields_;
  ExtractFunction function_;
};

class CheckerOfFunction final : public IntegrityChecker {
 public:
  explicit CheckerOfFunction(CheckFunction function) : function_(function) {}
  std::uint32_t check(const ChunkRun& run, std::uint32_t first, std::uint32_t n) override {
    for (std::uint32_t i = 0; i < n; ++i) {
      if (!function_(run.chunk(first + i))) return i;
    }
    return n;
  }

 private:
  CheckFunction function_;
};

}  // namespace detail

inline void Registry::add_extractor(ComponentInfo info, TriggerFields fields, ExtractFunction function) {
  add_extractor(std::move(info), [fields, function](const Parameters&) -> std::unique_ptr<TriggerExtractor> {
    return std::make_unique<detail::ExtractorOfFunction>(fields, function);
  });
}

inline void Registry::add_checker(ComponentInfo info, CheckFunction function) {
  add_checker(std::move(info), [function](const Parameters&) -> std::unique_ptr<IntegrityChecker> {
    return std::make_unique<detail::CheckerOfFunction>(function);
  });
}

}  // namespace rodeo

/// Defines the exports of a plug-in library: its ABI version and its registration function.
#define RODEO_PLUGIN(registry)                                                                                  \
  extern "C" __attribute__((visibility("default"))) const std::uint32_t rodeo_plugin_abi = ::rodeo::kPluginAbi; \
  extern "C" __attribute__((visibility("default"))) void rodeo_plugin_register(::rodeo::Registry&);             \
  extern "C" void rodeo_plugin_register(::rodeo::Registry& registry)
