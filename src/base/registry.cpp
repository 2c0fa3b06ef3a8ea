#include "base/registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"

namespace rodeo::base {

namespace {

constexpr const char* kBadFields = "base.bad_trigger_fields";

/// True for L1 ids of 1 to 32 bits without a reset counter, or of 24 bits with one.
bool are_possible(const TriggerFields& fields) {
  return fields.has_ecr ? fields.l1id_bits == 24 : fields.l1id_bits >= 1 && fields.l1id_bits <= 32;
}

bool is_snake_case(std::string_view name) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.front() >= 'a' && name.front() <= 'z' && std::all_of(name.begin(), name.end(), allowed);
}

/// Calls a factory; an exception or an empty pointer becomes an error.
template <typename FactoryType, typename... Arguments>
auto call(const Result<const ComponentRegistry::Component*>& found, const Arguments&... arguments)
    -> Result<std::invoke_result_t<const FactoryType&, const Arguments&...>> {
  if (!found) return std::unexpected(found.error());
  const ComponentRegistry::Component& component = **found;
  const auto failed = [&](std::string_view why) {
    return std::unexpected(
        Error{"base.component_failed",
              fmt::format("{} `{}` cannot be made: {}", kind_name(component.kind), component.info.name, why),
              component.origin == "built in" ? "" : component.origin});
  };
  try {
    auto made = std::get<FactoryType>(component.factory)(arguments...);
    if (made == nullptr) return failed("its factory returned nothing");
    return made;
  } catch (const SetupError& refused) {
    return std::unexpected(refused.error());
  } catch (const std::exception& thrown) {
    return failed(thrown.what());
  } catch (...) {
    return failed("its factory threw something that is not a std::exception");
  }
}

}  // namespace

std::string_view kind_name(ComponentKind kind) {
  switch (kind) {
    case ComponentKind::input: return "input";
    case ComponentKind::builder: return "builder";
    case ComponentKind::consumer: return "consumer";
    case ComponentKind::extractor: return "extractor";
    case ComponentKind::checker: return "checker";
    case ComponentKind::work: return "work";
    case ComponentKind::restamp: return "restamp";
    case ComponentKind::selection: return "selection";
  }
  return "component";
}

void ComponentRegistry::add(ComponentKind kind, ComponentInfo info, Factory factory) {
  const auto refuse = [&](std::string code, std::string what, std::string next) {
    throw SetupError(Error{std::move(code), std::move(what), {}, std::move(next)});
  };
  if (!is_snake_case(info.name)) {
    refuse("base.bad_component", fmt::format("{} from {} is called \"{}\"", kind_name(kind), origin_, info.name),
           "names of components are snake_case: a letter, then letters, digits and _");
  }
  for (const auto& other : components_) {
    if (other->kind != kind || other->info.name != info.name) continue;
    refuse("base.duplicate_component",
           fmt::format("{} `{}` is registered twice: by {} and by {}", kind_name(kind), info.name, other->origin, origin_),
           "load only one of the two, or rename one and rebuild it");
  }
  for (std::size_t i = 0; i < info.keys.size(); ++i) {
    const std::string& key = info.keys[i].name;
    const auto same = [&](const Key& other) { return other.name == key; };
    if (is_snake_case(key) && key != "type" && std::none_of(info.keys.begin(), info.keys.begin() + i, same)) continue;
    refuse("base.bad_component",
           fmt::format("{} `{}` from {} declares the key \"{}\"", kind_name(kind), info.name, origin_, key),
           "keys are snake_case, each declared once; `type` is taken");
  }
  components_.push_back(std::make_unique<Component>(Component{kind, std::move(info), origin_, std::move(factory)}));
}

std::unexpected<Error> ComponentRegistry::roll_back(std::size_t to, Error why) {
  components_.erase(components_.begin() + static_cast<std::ptrdiff_t>(to), components_.end());
  return std::unexpected(std::move(why));
}

Error ComponentRegistry::threw(std::string_view what) const {
  return {"base.registration_threw",
          fmt::format("the registration function of {} threw: {}", origin_, what),
          {},
          "nothing of it was registered"};
}

std::vector<std::string> ComponentRegistry::names(ComponentKind kind) const {
  std::vector<std::string> names;
  for (const auto& component : components_) {
    if (component->kind == kind) names.push_back(component->info.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<const ComponentRegistry::Component*> ComponentRegistry::find(ComponentKind kind, std::string_view name) const {
  for (const auto& component : components_) {
    if (component->kind == kind && component->info.name == name) return component.get();
  }
  const std::vector<std::string> known = names(kind);
  std::string next = did_you_mean(name, known);
  if (!next.empty()) next += ' ';
  next += known.empty() ? fmt::format("no {} is registered; does the configuration name its plug-in?", kind_name(kind))
                        : fmt::format("there are: {}", fmt::join(known, ", "));
  return std::unexpected(Error{
      "base.unknown_component", fmt::format("there is no {} called `{}`", kind_name(kind), name), {}, std::move(next)});
}

void ComponentRegistry::add_input(ComponentInfo info, InputFactory make) {
  add(ComponentKind::input, std::move(info), std::move(make));
}
void ComponentRegistry::add_builder(ComponentInfo info, BuilderFactory make) {
  add(ComponentKind::builder, std::move(info), std::move(make));
}
void ComponentRegistry::add_consumer(ComponentInfo info, ConsumerFactory make) {
  add(ComponentKind::consumer, std::move(info), std::move(make));
}
// A component without keys is made now to check its declarations. Other components are checked when they are made.
void ComponentRegistry::add_extractor(ComponentInfo info, ExtractorFactory make) {
  add(ComponentKind::extractor, std::move(info), std::move(make));
  const ComponentInfo& added = components_.back()->info;
  if (!added.keys.empty()) return;
  const auto extractor = make_extractor(added.name, {});
  if (!extractor && extractor.error().code == kBadFields) throw SetupError(extractor.error());
}
void ComponentRegistry::add_checker(ComponentInfo info, CheckerFactory make) {
  add(ComponentKind::checker, std::move(info), std::move(make));
}
void ComponentRegistry::add_work(ComponentInfo info, WorkFactory make) {
  add(ComponentKind::work, std::move(info), std::move(make));
}
void ComponentRegistry::add_restamp(ComponentInfo info, RestampFunction function) {
  add(ComponentKind::restamp, std::move(info), function);
}
void ComponentRegistry::add_selection(ComponentInfo info, SelectionFactory make) {
  add(ComponentKind::selection, std::move(info), std::move(make));
}

Result<std::unique_ptr<DataInput>> ComponentRegistry::make_input(std::string_view name, const Parameters& parameters) const {
  return call<InputFactory>(find(ComponentKind::input, name), parameters);
}
Result<std::unique_ptr<FragmentBuilder>> ComponentRegistry::make_builder(std::string_view name, const Parameters& parameters,
                                                                         const BuilderContext& context) const {
  return call<BuilderFactory>(find(ComponentKind::builder, name), parameters, context);
}
Result<std::unique_ptr<FragmentConsumer>> ComponentRegistry::make_consumer(std::string_view name,
                                                                           const Parameters& parameters) const {
  return call<ConsumerFactory>(find(ComponentKind::consumer, name), parameters);
}
Result<std::unique_ptr<TriggerExtractor>> ComponentRegistry::make_extractor(std::string_view name,
                                                                            const Parameters& parameters) const {
  const auto component = find(ComponentKind::extractor, name);
  auto extractor = call<ExtractorFactory>(component, parameters);
  if (!extractor) return extractor;
  if (const TriggerFields fields = (*extractor)->fields(); !are_possible(fields))
    return std::unexpected(Error{kBadFields,
                                 fmt::format("extractor `{}` from {} declares L1 ids of {} bits {} a reset counter", name,
                                             (*component)->origin, fields.l1id_bits, fields.has_ecr ? "with" : "without"),
                                 {},
                                 "declare 1 to 32 bits without a reset counter (has_ecr = false), or 24 bits with one"});
  return extractor;
}
Result<std::unique_ptr<IntegrityChecker>> ComponentRegistry::make_checker(std::string_view name,
                                                                          const Parameters& parameters) const {
  return call<CheckerFactory>(find(ComponentKind::checker, name), parameters);
}
Result<std::unique_ptr<FragmentWork>> ComponentRegistry::make_work(std::string_view name,
                                                                   const Parameters& parameters) const {
  return call<WorkFactory>(find(ComponentKind::work, name), parameters);
}
Result<std::unique_ptr<EventSelection>> ComponentRegistry::make_selection(std::string_view name,
                                                                          const Parameters& parameters) const {
  return call<SelectionFactory>(find(ComponentKind::selection, name), parameters);
}
Result<RestampFunction> ComponentRegistry::restamp(std::string_view name) const {
  const auto found = RODEO_TRY(find(ComponentKind::restamp, name));
  return std::get<RestampFunction>(found->factory);
}

}  // namespace rodeo::base
