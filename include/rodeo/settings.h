// A setting is declared once: a member of a struct, with name, help and limits. The declaration gives the keys of a
// component and the struct for its factory; the default is the member's value in a default-constructed struct.
//
//     struct Calibration {
//       double gain = 1;
//       std::chrono::nanoseconds wait = std::chrono::milliseconds{10};
//     };
//     const rodeo::Settings<Calibration> kCalibration{
//         rodeo::setting(&Calibration::gain, "gain", "Factor of every energy.", {.minimum = 0}),
//         rodeo::setting(&Calibration::wait, "wait", "How long it waits for the detector."),
//     };
//     registry.add_work({"calibrate", "Scales energies.", kCalibration.keys()},
//                       [](const rodeo::Parameters& p) { return std::make_unique<Calibrator>(kCalibration.read(p)); });
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "rodeo/ids.h"
#include "rodeo/parameters.h"

namespace rodeo {

/// The unit of a number, if its type does not give it: people then write the number with its unit.
enum class Unit : std::uint8_t { none, bytes, hertz, nanoseconds };

/// Optional properties of a setting. Limits are in the unit of the member, nanoseconds for a duration; a member of a
/// narrower type also has the limits of that type.
struct SettingRules {
  double minimum = -1e300;
  double maximum = 1e300;
  Unit unit = Unit::none;
  bool required = false;
  std::vector<std::string> choices = {};  ///< the allowed texts
};

/// A value in the form of a file: "10ms", "64KiB", "100kHz", "true"; lists with commas.
inline std::string setting_text(KeyType type, const Parameters::Value& value) {
  const auto number = [](auto n) {
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof text, n).ptr);
  };
  const auto scaled = [&](double n, std::initializer_list<std::pair<double, std::string_view>> units) {
    for (const auto& [unit, name] : units) {
      const double count = n / unit;
      if (n != 0 && count >= 1 && count < 1e15 && count == static_cast<double>(static_cast<std::int64_t>(count)))
        return number(static_cast<std::int64_t>(count)) + std::string(name);
    }
    return number(n);
  };
  const auto hexadecimal = [](std::uint64_t id, int digits) {
    std::string text = "0x";
    while (digits-- > 0) text += "0123456789abcdef"[id >> 4 * digits & 0xf];
    return text;
  };
  std::string list;
  switch (type) {
    case KeyType::boolean: return std::get<bool>(value) ? "true" : "false";
    case KeyType::integer: return number(std::get<std::int64_t>(value));
    case KeyType::real: return number(std::get<double>(value));
    case KeyType::duration:
      if (std::get<std::int64_t>(value) == 0) return "0s";
      return scaled(static_cast<double>(std::get<std::int64_t>(value)), {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}});
    case KeyType::size:
      return scaled(static_cast<double>(std::get<std::int64_t>(value)), {{0x1p40, "TiB"},
                                                                         {1e12, "TB"},
                                                                         {0x1p30, "GiB"},
                                                                         {1e9, "GB"},
                                                                         {0x1p20, "MiB"},
                                                                         {1e6, "MB"},
                                                                         {0x1p10, "KiB"},
                                                                         {1e3, "kB"}});
    case KeyType::rate: return scaled(std::get<double>(value), {{1e6, "MHz"}, {1e3, "kHz"}, {1, "Hz"}});
    case KeyType::fid: return hexadecimal(static_cast<std::uint64_t>(std::get<std::int64_t>(value)), 16);
    case KeyType::source_id: return hexadecimal(static_cast<std::uint64_t>(std::get<std::int64_t>(value)), 8);
    case KeyType::text_list:
      for (const std::string& one : std::get<std::vector<std::string>>(value)) list += (list.empty() ? "" : ",") + one;
      return list;
    case KeyType::fid_list:
      for (const std::uint64_t one : std::get<std::vector<std::uint64_t>>(value))
        list += (list.empty() ? "" : ",") + hexadecimal(one, 16);
      return list;
    case KeyType::integer_list:
      for (const std::uint64_t one : std::get<std::vector<std::uint64_t>>(value))
        list += (list.empty() ? "" : ",") + number(one);
      return list;
    case KeyType::text:
    case KeyType::choice:
    case KeyType::path: break;
  }
  return std::get<std::string>(value);
}

/// One setting of a struct: its key, and its writer and reader. If the key has no default, the struct's value is used.
template <typename Struct>
struct Setting {
  Key key;
  std::function<Parameters::Value(const Struct&)> get;
  std::function<void(Struct&, const Parameters&)> set;  ///< sets the member from parameters that contain the key; may throw
};

/// The settings of a struct, in the order in which people read them. Immutable; safe from any thread.
template <typename Struct>
class Settings {
 public:
  /// One setting, or the settings of a part of the struct; setting() returns them.
  using Lines = std::vector<Setting<Struct>>;

  /// The settings of the struct and of its base structs.
  template <typename... Of>
    requires(std::derived_from<Struct, Of> && ...)
  Settings(const std::vector<Setting<Of>>&... lines) {
    const auto add = [&](const auto& some) {
      for (const auto& [key, get, set] : some) settings_.push_back({key, get, set});
    };
    (add(lines), ...);
  }

  /// Every setting, with its complete key.
  Lines list() const {
    Lines list = settings_;
    const Struct defaults{};
    for (auto& [key, get, set] : list) {
      if (!key.required && key.fallback.empty()) key.fallback = setting_text(key.type, get(defaults));
    }
    return list;
  }

  /// The keys that a component declares.
  std::vector<Key> keys() const {
    std::vector<Key> keys;
    for (Setting<Struct>& one : list()) keys.push_back(std::move(one.key));
    return keys;
  }

  /// The struct from parameters that contain every key.
  Struct read(const Parameters& parameters) const {
    Struct out{};
    fill(out, parameters);
    return out;
  }

  /// Sets the members that have settings, for a struct with further members.
  void fill(Struct& out, const Parameters& parameters) const {
    for (const Setting<Struct>& one : settings_) one.set(out, parameters);
  }

  /// Makes these settings settings of a part of another struct, in the same table.
  template <typename Whole>
  typename Settings<Whole>::Lines within(Struct Whole::* part) const {
    typename Settings<Whole>::Lines lines;
    for (const Setting<Struct>& one : settings_) {
      lines.push_back({one.key, [=](const Whole& from) { return one.get(from.*part); },
                       [=](Whole& to, const Parameters& from) { one.set(to.*part, from); }});
    }
    return lines;
  }

 private:
  Lines settings_;
};

namespace detail {

template <typename T>
inline constexpr bool is_number = std::is_arithmetic_v<T> && !std::same_as<T, bool>;
template <typename T>
inline constexpr bool is_id = std::same_as<T, Fid> || std::same_as<T, SourceId>;
template <typename T>
inline constexpr bool is_duration = requires { typename T::period; };

/// A number, or the value of an optional or a list; as a number, an empty optional is -1.
template <typename T>
struct NumberOf {
  using Type = T;
  static constexpr double kLeast = std::is_unsigned_v<T> ? 0 : -1e300;
};
template <typename T>
struct NumberOf<std::optional<T>> {
  using Type = T;
  static constexpr double kLeast = -1;
};
template <typename T>
struct NumberOf<std::vector<T>> {
  using Type = T;
  static constexpr double kLeast = 0;
};
template <typename T>
inline constexpr bool is_optional = std::same_as<T, std::optional<typename NumberOf<T>::Type>>;
template <typename T>
inline constexpr bool is_list = std::same_as<T, std::vector<typename NumberOf<T>::Type>>;

constexpr bool is_real(KeyType type) { return type == KeyType::real || type == KeyType::rate; }

template <typename T>
constexpr KeyType type_of(Unit unit) {
  if constexpr (std::same_as<T, bool>) return KeyType::boolean;
  if constexpr (std::same_as<T, std::string>) return KeyType::text;
  if constexpr (std::same_as<T, std::filesystem::path>) return KeyType::path;
  if constexpr (std::same_as<T, Fid>) return KeyType::fid;
  if constexpr (std::same_as<T, SourceId>) return KeyType::source_id;
  if constexpr (std::same_as<T, std::vector<std::string>>) return KeyType::text_list;
  if constexpr (std::same_as<T, std::vector<Fid>>) return KeyType::fid_list;
  if constexpr (is_duration<T>) return KeyType::duration;
  if constexpr (is_list<T>) return KeyType::integer_list;
  switch (unit) {
    case Unit::bytes: return KeyType::size;
    case Unit::hertz: return KeyType::rate;
    case Unit::nanoseconds: return KeyType::duration;
    case Unit::none: break;
  }
  return std::floating_point<T> ? KeyType::real : KeyType::integer;
}

template <typename T>
Parameters::Value value_of(const T& value, KeyType type) {
  if constexpr (is_number<T>) {
    return is_real(type) ? Parameters::Value{static_cast<double>(value)} : static_cast<std::int64_t>(value);
  } else if constexpr (is_id<T>) {
    return static_cast<std::int64_t>(value.value);
  } else if constexpr (is_duration<T>) {
    return std::int64_t{std::chrono::nanoseconds(value).count()};
  } else if constexpr (std::same_as<T, std::filesystem::path>) {
    return value.string();
  } else if constexpr (is_optional<T>) {
    return value ? static_cast<std::int64_t>(*value) : -1;
  } else if constexpr (std::same_as<T, std::vector<Fid>>) {
    std::vector<std::uint64_t> ids;
    for (const Fid fid : value) ids.push_back(fid.value);
    return ids;
  } else if constexpr (is_list<T> && !std::same_as<T, std::vector<std::string>>) {
    return std::vector<std::uint64_t>(value.begin(), value.end());
  } else {
    return value;
  }
}

template <typename T>
T read_as(const Parameters& from, const std::string& name, KeyType type) {
  if constexpr (std::same_as<T, bool>) {
    return from.boolean(name);
  } else if constexpr (is_number<T>) {
    return is_real(type) ? static_cast<T>(from.real(name)) : static_cast<T>(from.integer(name));
  } else if constexpr (is_id<T>) {
    return T{static_cast<decltype(T::value)>(from.id(name))};
  } else if constexpr (is_duration<T>) {
    return std::chrono::ceil<T>(from.duration(name));
  } else if constexpr (std::same_as<T, std::vector<std::string>>) {
    return from.list(name);
  } else if constexpr (std::same_as<T, std::vector<Fid>>) {
    T fids;
    for (const std::uint64_t id : from.fids(name)) fids.push_back(Fid{id});
    return fids;
  } else if constexpr (is_list<T>) {
    T numbers;
    for (const std::uint64_t one : from.integers(name)) numbers.push_back(static_cast<typename T::value_type>(one));
    return numbers;
  } else if constexpr (is_optional<T>) {
    const std::int64_t number = from.integer(name);
    return number < 0 ? T{} : T{static_cast<typename T::value_type>(number)};
  } else {
    return from.text(name);
  }
}

}  // namespace detail

/// A member: boolean, number, text, path, duration, FID, source id, a list of numbers, texts or FIDs, or an optional integer
/// (written as -1 if empty).
template <typename Struct, typename T>
typename Settings<Struct>::Lines setting(T Struct::* member, const std::string& name, std::string help,
                                         SettingRules rules = {}) {
  const KeyType type = rules.choices.empty() ? detail::type_of<T>(rules.unit) : KeyType::choice;
  using Number = typename detail::NumberOf<T>::Type;
  if constexpr (detail::is_number<Number>) rules.minimum = std::max(rules.minimum, detail::NumberOf<T>::kLeast);
  if constexpr (detail::is_number<Number> && std::integral<Number> && sizeof(Number) < sizeof(std::int64_t))
    rules.maximum = std::min(rules.maximum, static_cast<double>(std::numeric_limits<Number>::max()));
  Key key{.name = name, .type = type, .help = std::move(help), .minimum = rules.minimum, .maximum = rules.maximum};
  key.choices = std::move(rules.choices);
  key.required = rules.required;
  return {{std::move(key), [=](const Struct& from) { return detail::value_of(from.*member, type); },
           [=](Struct& to, const Parameters& from) { to.*member = detail::read_as<T>(from, name, type); }}};
}

/// A member with a few named values.
template <typename Struct, typename T>
typename Settings<Struct>::Lines setting(T Struct::* member, const std::string& name,
                                         const std::vector<std::pair<std::string, std::type_identity_t<T>>>& names,
                                         std::string help, bool required = false) {
  Key key{.name = name, .type = KeyType::choice, .help = std::move(help), .required = required};
  for (const auto& one : names) key.choices.push_back(one.first);
  const auto get = [=](const Struct& from) -> Parameters::Value {
    const auto found = std::ranges::find(names, from.*member, [](const auto& one) { return one.second; });
    return found == names.end() ? std::string{} : found->first;
  };
  const auto set = [=](Struct& to, const Parameters& from) {
    to.*member = std::ranges::find(names, from.text(name), [](const auto& one) { return one.first; })->second;
  };
  return {{std::move(key), get, set}};
}

/// A part of the struct: its settings are in the same table.
template <typename Struct, typename Part>
typename Settings<Struct>::Lines setting(Part Struct::* part, const Settings<Part>& settings) {
  return settings.within(part);
}

}  // namespace rodeo
