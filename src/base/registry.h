// The components of this process by kind and name: those of the default library and those of plug-ins.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "rodeo/plugin.h"

namespace rodeo::base {

enum class ComponentKind : std::uint8_t { input, builder, consumer, extractor, checker, work, restamp, selection };

inline constexpr std::array kComponentKinds = {ComponentKind::input,     ComponentKind::builder,  ComponentKind::consumer,
                                               ComponentKind::extractor, ComponentKind::checker,  ComponentKind::work,
                                               ComponentKind::restamp,   ComponentKind::selection};

/// "input", "builder", ...
std::string_view kind_name(ComponentKind kind);

/// Holds the components that libraries register. The application's thread fills and reads it during set-up; any thread may
/// read. Factories live in the libraries that registered them; these stay loaded.
class ComponentRegistry final : public Registry {
 public:
  using Factory = std::variant<InputFactory, BuilderFactory, ConsumerFactory, ExtractorFactory, CheckerFactory, WorkFactory,
                               RestampFunction, SelectionFactory>;

  struct Component {
    ComponentKind kind = ComponentKind::input;
    ComponentInfo info;
    std::string origin;  ///< "built in" or the path of the library
    Factory factory;
  };

  /// Registers a library as a whole: runs `registration`; if it throws, removes everything it added.
  /// Errors: base.duplicate_component, base.bad_component, base.bad_trigger_fields, base.registration_threw.
  template <typename Registration>
  Result<void> add_library(std::string origin, Registration&& registration) {
    const std::size_t before = components_.size();
    origin_ = std::move(origin);
    try {
      registration(static_cast<Registry&>(*this));
    } catch (const SetupError& refused) {
      return roll_back(before, refused.error());
    } catch (const std::exception& thrown) {
      return roll_back(before, threw(thrown.what()));
    } catch (...) {
      return roll_back(before, threw("something that is not a std::exception"));
    }
    return {};
  }

  /// The component, or an error base.unknown_component with the nearest names and all known ones.
  Result<const Component*> find(ComponentKind kind, std::string_view name) const;

  /// Names of one kind, sorted.
  std::vector<std::string> names(ComponentKind kind) const;

  /// The components in the order of registration.
  const std::vector<std::unique_ptr<Component>>& components() const { return components_; }

  /// Make a component by name. An exception of a factory becomes an error base.component_failed that names kind and
  /// component.
  Result<std::unique_ptr<DataInput>> make_input(std::string_view name, const Parameters& parameters) const;
  Result<std::unique_ptr<FragmentBuilder>> make_builder(std::string_view name, const Parameters& parameters,
                                                        const BuilderContext& context) const;
  Result<std::unique_ptr<FragmentConsumer>> make_consumer(std::string_view name, const Parameters& parameters) const;
  Result<std::unique_ptr<TriggerExtractor>> make_extractor(std::string_view name, const Parameters& parameters) const;
  Result<std::unique_ptr<IntegrityChecker>> make_checker(std::string_view name, const Parameters& parameters) const;
  Result<std::unique_ptr<FragmentWork>> make_work(std::string_view name, const Parameters& parameters) const;
  Result<RestampFunction> restamp(std::string_view name) const;
  Result<std::unique_ptr<EventSelection>> make_selection(std::string_view name, const Parameters& parameters) const;

  // The functions of Registry throw SetupError for a name that is taken or malformed. Call them through add_library().
  using Registry::add_checker;
  using Registry::add_extractor;
  void add_input(ComponentInfo info, InputFactory make) override;
  void add_builder(ComponentInfo info, BuilderFactory make) override;
  void add_consumer(ComponentInfo info, ConsumerFactory make) override;
  void add_extractor(ComponentInfo info, ExtractorFactory make) override;
  void add_checker(ComponentInfo info, CheckerFactory make) override;
  void add_work(ComponentInfo info, WorkFactory make) override;
  void add_restamp(ComponentInfo info, RestampFunction function) override;
  void add_selection(ComponentInfo info, SelectionFactory make) override;

 private:
  void add(ComponentKind kind, ComponentInfo info, Factory factory);
  std::unexpected<Error> roll_back(std::size_t to, Error why);
  Error threw(std::string_view what) const;

  std::vector<std::unique_ptr<Component>> components_;
  std::string origin_ = "built in";
};

}  // namespace rodeo::base
