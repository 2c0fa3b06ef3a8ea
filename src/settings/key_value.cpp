#include "settings/key_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ranges>

#include "base/nearest.h"
#include "base/units.h"
#include "settings/fid_text.h"

namespace rodeo::settings {

namespace {

using Kind = RawValue::Kind;
constexpr double kNoLimit = 1e299;

/// The name of a type, and an example; in the order of KeyType.
struct Words {
  const char* name;
  const char* example;
};

constexpr Words kWords[] = {
    {"boolean", "true or false"},
    {"integer", "an integer such as 42"},
    {"number", "a number such as 0.5"},
    {"text", "a text such as \"name\""},
    {"duration", "a duration such as \"10ms\""},
    {"size", "a size such as \"2MiB\""},
    {"rate", "a rate such as \"100kHz\""},
    {"choice", "one of its choices, a text"},
    {"path", "a path, a text"},
    {"FID", "a FELIX identifier such as \"0x1000000000540000\""},
    {"source id", "a source id such as \"0x00610001\""},
    {"list of texts", "a list of texts such as [\"a\", \"b\"]"},
    {"list of FIDs", "a list of FELIX identifiers such as [\"0x1000000000540000\"]"},
    {"list of integers", "a list of integers such as [1, 2]"},
};
static_assert(std::size(kWords) == static_cast<std::size_t>(KeyType::integer_list) + 1);

const char* example(KeyType type) { return kWords[static_cast<std::size_t>(type)].example; }

bool is_list(KeyType type) {
  return type == KeyType::text_list || type == KeyType::fid_list || type == KeyType::integer_list;
}

/// The texts between commas.
std::vector<std::string> in_commas(std::string_view text) {
  std::vector<std::string> list;
  for (const auto one : std::views::split(text, ',')) {
    if (!one.empty()) list.emplace_back(one.begin(), one.end());
  }
  return list;
}

std::string quantity(const Key& key, double value) {
  switch (key.type) {
    case KeyType::duration: return base::format_duration(std::chrono::nanoseconds{static_cast<std::int64_t>(value)});
    case KeyType::size:
      return value < 0 ? fmt::format("{:.0f} B", value) : base::format_size(static_cast<std::uint64_t>(value));
    case KeyType::rate: return base::format_quantity(value, "Hz");
    case KeyType::integer:
    case KeyType::integer_list: return fmt::format("{:.0f}", value);
    default: return fmt::format("{}", value);
  }
}

/// Converts one value; holds the data for messages.
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
      case KeyType::integer_list: return integer_list(raw);
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
    return bad_value({"", "the name contains a NUL character, which file names cannot have", {}, "take it out"});
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
    } else if (!parsed(raw.text, value)) {
      return bad_value({"", fmt::format("\"{}\" is not a source id", raw.text), {}, "write it like \"0x00610001\""});
    }
    if (value > 0xffffffffU) {
      return bad_value({"", fmt::format("{:#x} has more than 32 bits", value), {}, "write it like \"0x00610001\""});
    }
    return static_cast<std::int64_t>(value);
  }

  /// The texts of a list; a word is split at commas.
  Result<std::vector<std::string>> texts(const RawValue& raw) const {
    std::vector<std::string> list;
    if (raw.kind == Kind::word) return in_commas(raw.text);
    if (raw.kind != Kind::array) return wrong_type(raw);
    for (const RawValue& element : raw.elements) {
      if (element.kind == Kind::text) {
        list.push_back(element.text);
      } else if (key_.type == KeyType::fid_list && element.kind == Kind::integer) {
        list.push_back(fmt::format("{:#x}", static_cast<std::uint64_t>(element.integer)));
      } else if (key_.type == KeyType::integer_list && element.kind == Kind::integer) {
        list.push_back(fmt::format("{}", element.integer));
      } else {
        return std::unexpected(Error{
            "config.wrong_type", fmt::format("{} must be {}, but has {}", path_, example(key_.type), element.describe())});
      }
    }
    return list;
  }

  Result<Parameters::Value> text_list(const RawValue& raw) const { return RODEO_TRY(texts(raw)); }

  Result<Parameters::Value> integer_list(const RawValue& raw) const {
    std::vector<std::uint64_t> numbers;
    for (const std::string& text : RODEO_TRY(texts(raw))) {
      std::int64_t number = 0;
      if (!parsed(text, number))
        return bad_value({"", fmt::format("\"{}\" is not a whole number", text), {}, "write it like 17 or \"0x11\""});
      RODEO_TRY(in_range(number));
      numbers.push_back(static_cast<std::uint64_t>(number));
    }
    return numbers;
  }

  Result<Parameters::Value> fid_list(const RawValue& raw) const {
    std::vector<std::uint64_t> fids;
    for (const std::string& text : RODEO_TRY(texts(raw))) {
      const auto range = parse_fid_range(text);
      if (!range) return bad_value(range.error());
      for (const Fid one : *range) fids.push_back(one.value);
    }
    return fids;
  }

  /// An integer may be hexadecimal, with 0x.
  template <typename T>
  static bool parsed(std::string_view text, T& value) {
    std::from_chars_result result{};
    if constexpr (std::is_floating_point_v<T>) {
      result = std::from_chars(text.data(), text.data() + text.size(), value);
    } else {
      const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
      if (hexadecimal) text.remove_prefix(2);
      result = std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
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
  if (is_list(key.type) && raw.text == "[]") raw.text.clear();
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

std::string type_name(KeyType type) { return kWords[static_cast<std::size_t>(type)].name; }

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
    case KeyType::fid_list:
    case KeyType::integer_list: break;
    default: return "\"" + key.fallback + "\"";
  }
  if (key.fallback.empty() || key.fallback == "[]") return "[]";
  std::string list;
  for (const std::string& one : in_commas(key.fallback)) list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", one);
  return "[" + list + "]";
}

std::string summary(const Key& key) {
  if (key.required) return type_name(key.type) + ", required";
  return fmt::format("{}, default {}", type_name(key.type), key.fallback.empty() ? default_text(key) : key.fallback);
}

}  // namespace rodeo::settings
