#include "settings/key_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/nearest.h"
#include "base/units.h"
#include "settings/fid_text.h"

namespace rodeo::settings {

namespace {

using Kind = RawValue::Kind;
constexpr double kNoLimit = 1e299;

std::string example(KeyType type) {
  switch (type) {
    case KeyType::boolean: return "true or false";
    case KeyType::integer: return "an integer such as 42";
    case KeyType::real: return "a number such as 0.5";
    case KeyType::text: return "a text such as \"name\"";
    case KeyType::duration: return "a duration such as \"10ms\"";
    case KeyType::size: return "a size such as \"2MiB\"";
    case KeyType::rate: return "a rate such as \"100kHz\"";
    case KeyType::choice: return "one of its choices, a text";
    case KeyType::path: return "a path, a text";
    case KeyType::fid: return "a FELIX identifier such as \"0x1000000000540000\"";
    case KeyType::source_id: return "a source id such as \"0x00610001\"";
    case KeyType::text_list: return "a list of texts such as [\"a\", \"b\"]";
    case KeyType::fid_list: return "a list of FELIX identifiers such as [\"0x1000000000540000\"]";
  }
  return "a value";
}

std::string quantity(const Key& key, double value) {
  switch (key.type) {
    case KeyType::duration: return base::format_duration(std::chrono::nanoseconds{static_cast<std::int64_t>(value)});
    case KeyType::size:
      return value < 0 ? fmt::format("{:.0f} B", value) : base::format_size(static_cast<std::uint64_t>(value));
    case KeyType::rate: return base::format_quantity(value, "Hz");
    case KeyType::integer: return fmt::format("{:.0f}", value);
    default: return fmt::format("{}", value);
  }
}

/// Conversion of one value; carries what messages need.
class Converter {
 public:
  Converter(const Key& key, const std::string& path, const std::filesystem::path& directory)
      : key_(key), path_(path), directory_(directory) {}

  Result<Parameters::Value> convert(const RawValue& raw) const {
    switch (key_.type) {
      case KeyType::boolean: return boolean(raw);
      case KeyType::integer: return integer(raw);
      case KeyType::real: return real(raw);
      case KeyType::text: return is_text(raw) ? Result<Parameters::Value>{raw.text} : wrong_type(raw);
      case KeyType::choice: return choice(raw);
      case KeyType::path: return is_text(raw) ? path(raw.text) : wrong_type(raw);
      case KeyType::duration: return duration(raw);
      case KeyType::size: return size(raw);
      case KeyType::rate: return rate(raw);
      case KeyType::fid: return fid(raw);
      case KeyType::source_id: return source_id(raw);
      case KeyType::text_list: return text_list(raw);
      case KeyType::fid_list: return fid_list(raw);
    }
    return wrong_type(raw);
  }

 private:
  static bool is_text(const RawValue& raw) { return raw.kind == Kind::text || raw.kind == Kind::word; }

  std::unexpected<Error> wrong_type(const RawValue& raw) const {
    return std::unexpected(
        Error{"config.wrong_type", fmt::format("{} must be {}, not {}", path_, example(key_.type), raw.describe())});
  }

  std::unexpected<Error> bad_value(const Error& why) const {
    return std::unexpected(Error{"config.bad_value", fmt::format("{}: {}", path_, why.what), {}, why.next});
  }

  template <typename T>
  Result<Parameters::Value> in_range(T value) const {
    const double number = static_cast<double>(value);
    if (number < key_.minimum || number > key_.maximum) {
      return std::unexpected(Error{
          "config.out_of_range", fmt::format("{} is {}, but must be {}", path_, quantity(key_, number), range_text(key_))});
    }
    return Parameters::Value{value};
  }

  Result<Parameters::Value> path(const std::string& text) const {
    if (text.find('\0') == std::string::npos) return Parameters::Value{resolved(text)};
    return bad_value({"", "the name holds a NUL character, which no file can have", {}, "take it out"});
  }

  std::string resolved(const std::string& text) const {
    if (text.empty()) return text;
    return (directory_ / text).lexically_normal().string();
  }

  Result<Parameters::Value> boolean(const RawValue& raw) const {
    if (raw.kind == Kind::boolean) return raw.boolean;
    if (raw.kind == Kind::word && (raw.text == "true" || raw.text == "false")) return raw.text == "true";
    return wrong_type(raw);
  }

  Result<Parameters::Value> integer(const RawValue& raw) const {
    if (raw.kind == Kind::integer) return in_range(raw.integer);
    std::int64_t value = 0;
    if (raw.kind == Kind::word && parsed(raw.text, value)) return in_range(value);
    return wrong_type(raw);
  }

  Result<Parameters::Value> real(const RawValue& raw) const {
    if (raw.kind == Kind::integer) return in_range(static_cast<double>(raw.integer));
    if (raw.kind == Kind::real && std::isfinite(raw.real)) return in_range(raw.real);
    double value = 0;
    if (raw.kind == Kind::word && parsed(raw.text, value) && std::isfinite(value)) return in_range(value);
    return wrong_type(raw);
  }

  Result<Parameters::Value> choice(const RawValue& raw) const {
    if (!is_text(raw)) return wrong_type(raw);
    if (std::ranges::find(key_.choices, raw.text) != key_.choices.end()) return raw.text;
    std::string list;
    for (const std::string& one : key_.choices) list += (list.empty() ? "" : ", ") + one;
    return std::unexpected(Error{"config.bad_choice",
                                 fmt::format("{} is \"{}\", but must be one of: {}", path_, raw.text, list),
                                 {},
                                 base::did_you_mean(raw.text, key_.choices)});
  }

  Result<Parameters::Value> duration(const RawValue& raw) const {
    if (raw.kind == Kind::integer && raw.integer == 0) return in_range(std::int64_t{0});
    if (!is_text(raw)) return wrong_type(raw);
    const auto value = base::parse_duration(raw.text);
    return value ? in_range(std::int64_t{value->count()}) : bad_value(value.error());
  }

  Result<Parameters::Value> size(const RawValue& raw) const {
    if (raw.kind == Kind::integer) return in_range(raw.integer);
    if (!is_text(raw)) return wrong_type(raw);
    const auto value = base::parse_size(raw.text);
    return value ? in_range(static_cast<std::int64_t>(*value)) : bad_value(value.error());
  }

  Result<Parameters::Value> rate(const RawValue& raw) const {
    if (raw.kind == Kind::integer) return in_range(static_cast<double>(raw.integer));
    if (raw.kind == Kind::real && std::isfinite(raw.real)) return in_range(raw.real);
    if (!is_text(raw)) return wrong_type(raw);
    const auto value = base::parse_rate_hz(raw.text);
    return value ? in_range(*value) : bad_value(value.error());
  }

  Result<Parameters::Value> fid(const RawValue& raw) const {
    if (raw.kind == Kind::integer) return raw.integer;
    if (!is_text(raw)) return wrong_type(raw);
    const auto value = parse_fid(raw.text);
    return value ? Result<Parameters::Value>{static_cast<std::int64_t>(value->value)} : bad_value(value.error());
  }

  Result<Parameters::Value> source_id(const RawValue& raw) const {
    std::uint64_t value = 0;
    if (raw.kind == Kind::integer && raw.integer >= 0) {
      value = static_cast<std::uint64_t>(raw.integer);
    } else if (!is_text(raw)) {
      return wrong_type(raw);
    } else if (raw.text.starts_with("0x") ? !parsed(std::string_view(raw.text).substr(2), value, 16)
                                          : !parsed(raw.text, value)) {
      return bad_value({"", fmt::format("\"{}\" is not a source id", raw.text), {}, "write it like \"0x00610001\""});
    }
    if (value > 0xffffffffU) {
      return bad_value({"", fmt::format("{:#x} has more than 32 bits", value), {}, "write it like \"0x00610001\""});
    }
    return static_cast<std::int64_t>(value);
  }

  /// The texts of a list; a word is split at commas.
  Result<std::vector<std::string>> texts(const RawValue& raw, bool integers_too) const {
    std::vector<std::string> list;
    if (raw.kind == Kind::word) {
      std::string_view rest = raw.text;
      while (!rest.empty()) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        if (comma > 0) list.emplace_back(rest.substr(0, comma));
        rest.remove_prefix(std::min(comma + 1, rest.size()));
      }
      return list;
    }
    if (raw.kind != Kind::array) return wrong_type(raw);
    for (const RawValue& element : raw.elements) {
      if (element.kind == Kind::text) {
        list.push_back(element.text);
      } else if (integers_too && element.kind == Kind::integer) {
        list.push_back(fmt::format("{:#x}", static_cast<std::uint64_t>(element.integer)));
      } else {
        return std::unexpected(Error{
            "config.wrong_type", fmt::format("{} must be {}, but holds {}", path_, example(key_.type), element.describe())});
      }
    }
    return list;
  }

  Result<Parameters::Value> text_list(const RawValue& raw) const {
    auto list = texts(raw, false);
    if (!list) return std::unexpected(list.error());
    return std::move(*list);
  }

  Result<Parameters::Value> fid_list(const RawValue& raw) const {
    const auto list = texts(raw, true);
    if (!list) return std::unexpected(list.error());
    std::vector<std::uint64_t> fids;
    for (const std::string& text : *list) {
      const auto range = parse_fid_range(text);
      if (!range) return bad_value(range.error());
      for (const Fid one : *range) fids.push_back(one.value);
    }
    return fids;
  }

  template <typename T>
  static bool parsed(std::string_view text, T& value, int base_of_digits = 10) {
    std::from_chars_result result{};
    if constexpr (std::is_floating_point_v<T>) {
      result = std::from_chars(text.data(), text.data() + text.size(), value);
    } else {
      result = std::from_chars(text.data(), text.data() + text.size(), value, base_of_digits);
    }
    return result.ec == std::errc{} && result.ptr == text.data() + text.size();
  }

  const Key& key_;
  const std::string& path_;
  const std::filesystem::path& directory_;
};

}  // namespace

Result<Parameters::Value> convert_value(const Key& key, const RawValue& raw, const std::string& path,
                                        const std::filesystem::path& directory) {
  return Converter(key, path, directory).convert(raw);
}

Result<Parameters::Value> default_value(const Key& key, const std::string& path, const std::filesystem::path& directory) {
  RawValue raw;
  raw.kind = Kind::word;
  raw.text = key.fallback;
  const bool list = key.type == KeyType::text_list || key.type == KeyType::fid_list;
  if (list && raw.text == "[]") raw.text.clear();
  if ((key.type == KeyType::fid || key.type == KeyType::source_id) && raw.text.empty()) raw.text = "0";
  auto value = convert_value(key, raw, path, directory);
  if (value) return value;
  Error error = value.error().within(fmt::format("the default \"{}\" does not fit its own declaration", key.fallback));
  error.code = "config.bad_default";
  error.next = "this is a mistake in the component that declares the key";
  return std::unexpected(std::move(error));
}

std::string base_text(KeyType type, const Parameters::Value& value) {
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  const auto* whole = std::get_if<std::int64_t>(&value);
  if (whole == nullptr) return std::get<std::string>(value);
  return type == KeyType::duration ? fmt::format("{}", static_cast<double>(*whole) / 1e9) : fmt::format("{}", *whole);
}

std::string type_name(KeyType type) {
  switch (type) {
    case KeyType::boolean: return "boolean";
    case KeyType::integer: return "integer";
    case KeyType::real: return "number";
    case KeyType::text: return "text";
    case KeyType::duration: return "duration";
    case KeyType::size: return "size";
    case KeyType::rate: return "rate";
    case KeyType::choice: return "choice";
    case KeyType::path: return "path";
    case KeyType::fid: return "FID";
    case KeyType::source_id: return "source id";
    case KeyType::text_list: return "list of texts";
    case KeyType::fid_list: return "list of FIDs";
  }
  return "value";
}

std::string range_text(const Key& key) {
  const bool low = key.minimum > -kNoLimit;
  const bool high = key.maximum < kNoLimit;
  if (low && high) return fmt::format("{} to {}", quantity(key, key.minimum), quantity(key, key.maximum));
  if (low) return "at least " + quantity(key, key.minimum);
  if (high) return "at most " + quantity(key, key.maximum);
  return {};
}

std::string default_text(const Key& key) {
  switch (key.type) {
    case KeyType::boolean:
    case KeyType::integer:
    case KeyType::real: return key.fallback;
    case KeyType::text_list:
    case KeyType::fid_list: break;
    default: return "\"" + key.fallback + "\"";
  }
  if (key.fallback.empty() || key.fallback == "[]") return "[]";
  std::string list;
  std::string_view rest = key.fallback;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return "[" + list + "]";
}

std::string summary(const Key& key) {
  if (key.required) return type_name(key.type) + ", required";
  return fmt::format("{}, default {}", type_name(key.type), key.fallback.empty() ? default_text(key) : key.fallback);
}

}  // namespace rodeo::settings
