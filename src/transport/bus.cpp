#include "transport/bus.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <variant>

#include "base/fd_socket.h"
#include "base/runtime_dir.h"
#include "settings/fid_text.h"
#include "settings/json.h"
#include "settings/text_file.h"
#include "transport/control_socket.h"

namespace rodeo::transport {
namespace {

using settings::Json;

constexpr std::size_t kMostName = 64;
constexpr std::size_t kMostText = 255;
constexpr std::size_t kMostProviders = 16;
constexpr std::uint32_t kMostPageBytes = 1U << 20;
constexpr std::uint32_t kMostChunkBytes = 1U << 28;
constexpr std::string_view kExtension = ".json";
constexpr std::chrono::milliseconds kPatience{1000};

std::unexpected<Error> no_bus(const std::filesystem::path& bus, std::string what) {
  return std::unexpected(Error{"transport.bus", std::move(what), bus.string(), "name another directory with `bus`"});
}

bool is_name(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kMostName && std::ranges::all_of(text, allowed);
}

// Consecutive links become one run; the order stays.
Json runs_of(const std::vector<Fid>& links) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < links.size();) {
    std::uint32_t n = 1;
    while (i + n < links.size() && settings::advance(links[i], n) == links[i + n]) ++n;
    runs.push_back(n == 1 ? fmt::format("{:#018x}", links[i].value) : fmt::format("{:#018x}+{}", links[i].value, n));
    i += n;
  }
  return runs;
}

// Reads the members of one file. Keeps the first error.
class Members {
 public:
  explicit Members(const Json& json) : json_(json) {}

  void wrong(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  const std::string& wrong() const { return wrong_; }

  std::string text(const char* key, std::size_t most = kMostText) {
    const Json& value = member(key);
    if (!is_text(value, most)) wrong(fmt::format("`{}` must be printable text of at most {} characters", key, most));
    return wrong_.empty() ? value.string() : "";
  }

  std::uint64_t number(const char* key, std::uint64_t least, std::uint64_t most) {
    const Json& value = member(key);
    const bool positive = value.is_unsigned() || (value.is_signed() && value.signed_integer() >= 0);
    const std::uint64_t number =
        value.is_unsigned() ? value.unsigned_integer() : static_cast<std::uint64_t>(value.signed_integer());
    if (!positive || number < least || number > most)
      wrong(fmt::format("`{}` must be a whole number from {} to {}", key, least, most));
    return wrong_.empty() ? number : 0;
  }

  double real(const char* key) {
    const Json& value = member(key);
    if (!value.is_number()) wrong(fmt::format("`{}` must be a number", key));
    return value.number();
  }

  bool boolean(const char* key) {
    const Json& value = member(key);
    if (!value.is_boolean()) wrong(fmt::format("`{}` must be true or false", key));
    return value.boolean();
  }

  // Hexadecimal text, because a JSON number (a double) cannot hold 64 bits.
  std::uint64_t hexadecimal(const char* key) {
    const std::string digits = text(key);
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const bool good = digits.starts_with("0x") && [&] {
      const auto [stop, status] = std::from_chars(digits.data() + 2, end, value, 16);
      return stop == end && status == std::errc{};
    }();
    if (!good) wrong(fmt::format("`{}` must be a 64-bit number like 0x12ab", key));
    return value;
  }

  std::vector<std::string> texts(const char* key, std::size_t most) {
    const Json& value = member(key);
    std::vector<std::string> texts;
    if (!value.is_array() || value.elements().size() > most) wrong(fmt::format("`{}` must list at most {}", key, most));
    if (!wrong_.empty()) return texts;
    for (const Json& element : value.elements()) {
      if (!is_text(element, kMostText)) wrong(fmt::format("`{}` has an element that is not text", key));
      texts.push_back(element.string());
    }
    return texts;
  }

  std::vector<Fid> fids(const char* key) {
    std::vector<Fid> fids;
    std::unordered_set<Fid> seen;
    for (const std::string& run : texts(key, kMostBusLinks)) {
      const auto some = settings::parse_fid_range(run);
      if (!some) {
        wrong(some.error().what);
      } else if (fids.size() + some->size() > kMostBusLinks) {
        wrong(fmt::format("`{}` has more than {} FIDs", key, kMostBusLinks));
      } else {
        for (const Fid fid : *some) {
          if (!seen.insert(fid).second) wrong(fmt::format("{:#x} is listed twice", fid.value));
        }
        fids.insert(fids.end(), some->begin(), some->end());
      }
      if (!wrong_.empty()) return {};
    }
    return fids;
  }

 private:
  static bool is_text(const Json& value, std::size_t most) {
    return value.is_string() && value.string().size() <= most &&
           std::ranges::all_of(value.string(), [](char c) { return c >= ' ' && c <= '~'; });
  }

  const Json& member(const char* key) {
    static const Json nothing;
    const Json* found = json_.find(key);
    if (found == nullptr) wrong(fmt::format("`{}` is missing", key));
    return found == nullptr ? nothing : *found;
  }

  const Json& json_;
  std::string wrong_;
};

Result<BusEntry> read_entry(const std::filesystem::path& file) {
  return parse_bus_entry(RODEO_TRY(settings::read_text_file(file, kMostBusFileBytes)), file);
}

// The default bus lies in a directory that must belong to this user.
Result<void> check_runtime_directory(const std::filesystem::path& bus) {
  if (bus == default_bus()) RODEO_TRY(base::runtime_directory());
  return {};
}

// Our own port answers, too.
bool is_ours(const BusEntry& there, const BusEntry& entry) {
  return there.instance == entry.instance ||
         (there.host == entry.host && there.address == entry.address && there.port == entry.port);
}

bool ends_at_itself(int socket) {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t own_size = sizeof own;
  socklen_t peer_size = sizeof peer;
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
         ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 && own_size == peer_size &&
         std::memcmp(&own, &peer, own_size) == 0;
}

// Returns an empty descriptor if no process accepts the connection in time.
base::UniqueFd connected_to(const std::string& address, std::uint16_t port, std::chrono::steady_clock::time_point deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (port == 0 || ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  base::UniqueFd socket(::socket(found->ai_family, found->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, found->ai_protocol));
  if (!socket) return {};
  if (::connect(socket.get(), found->ai_addr, found->ai_addrlen) != 0) {
    if (errno != EINPROGRESS || !base::wait_for(socket.get(), POLLOUT, deadline)) return {};
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return {};
  }
  // The kernel may give a free port of this host to our own end: a connection to itself.
  return ends_at_itself(socket.get()) ? base::UniqueFd() : std::move(socket);
}

}  // namespace

std::string bus_entry_text(const BusEntry& entry) {
  Json json = Json::object({{"name", entry.name},
                            {"instance", fmt::format("{:#018x}", entry.instance)},
                            {"host", entry.host},
                            {"pid", entry.pid},
                            {"address", entry.address},
                            {"port", entry.port},
                            {"providers", Json::array_of(entry.providers)},
                            {"page_bytes", entry.page_bytes},
                            {"program", entry.program},
                            {"unix_time", entry.unix_time},
                            {"trigger_list", entry.trigger_list},
                            {"links", runs_of(entry.links)}});
  if (!entry.service.empty()) json["service"] = entry.service;
  if (entry.max_chunk_bytes != 0) json["max_chunk_bytes"] = entry.max_chunk_bytes;
  return json.dump() + "\n";
}

Result<BusEntry> parse_bus_entry(std::string_view text, const std::filesystem::path& file) {
  const auto bad = [&](std::string what) {
    return std::unexpected(
        Error{"transport.bus_entry", std::move(what), file.string(), "remove the file if no publisher writes it"});
  };
  const auto json = Json::parse(text);
  if (!json) return bad(json.error().what);
  Members members(*json);
  BusEntry entry;
  entry.name = members.text("name");
  entry.instance = members.hexadecimal("instance");
  entry.host = members.text("host");
  entry.pid = static_cast<std::int64_t>(members.number("pid", 0, std::numeric_limits<std::int64_t>::max()));
  entry.address = members.text("address");
  entry.port = static_cast<std::uint16_t>(members.number("port", 1, 65'535));
  entry.providers = members.texts("providers", kMostProviders);
  entry.page_bytes = static_cast<std::uint32_t>(members.number("page_bytes", 0, kMostPageBytes));
  entry.program = members.text("program");
  entry.unix_time = members.real("unix_time");
  entry.trigger_list = members.boolean("trigger_list");
  if (json->find("service") != nullptr) entry.service = members.text("service", kMostName);
  if (json->find("max_chunk_bytes") != nullptr)
    entry.max_chunk_bytes = static_cast<std::uint32_t>(members.number("max_chunk_bytes", 1, kMostChunkBytes));
  entry.links = members.fids("links");
  if (!is_name(entry.name)) {
    members.wrong(fmt::format("`{}` is not a name: letters, digits, `.`, `_` and `-`, at most {}", entry.name, kMostName));
  } else if (file.filename() != entry.name + std::string(kExtension)) {
    members.wrong(fmt::format("the file of `{}` must be named {}{}", entry.name, entry.name, kExtension));
  }
  if (!members.wrong().empty()) return bad(members.wrong());
  return entry;
}

std::filesystem::path default_bus() { return base::runtime_directory_name() / "bus"; }

Result<Advertisement> Advertisement::put(const std::filesystem::path& bus, BusEntry entry) {
  const std::filesystem::path file = bus / (entry.name + std::string(kExtension));
  const std::string text = bus_entry_text(entry);
  (void)RODEO_TRY(parse_bus_entry(text, file));
  RODEO_TRY(check_runtime_directory(bus));
  if (::mkdir(bus.c_str(), 0700) != 0 && errno != EEXIST)
    return no_bus(bus, fmt::format("cannot make the bus: {}", std::strerror(errno)));
  const auto there = read_entry(file);
  if (there && !is_ours(*there, entry) && is_alive(*there, kPatience)) {
    return std::unexpected(
        Error{"transport.name_taken",
              fmt::format("another publisher has the name {}: {}, process {} on {}, answers at {} port {}", entry.name,
                          there->program, there->pid, there->host, there->address, there->port),
              file.string(), "give this one another name, or end the other"});
  }
  const std::filesystem::path part = bus / fmt::format("{}.{:016x}.part", entry.name, entry.instance);
  std::ofstream out(part, std::ios::trunc);
  out << text;
  out.close();
  if (!out || ::rename(part.c_str(), file.c_str()) != 0) {
    const int error = errno;
    (void)::remove(part.c_str());
    return no_bus(bus, fmt::format("cannot write {}: {}", file.filename().string(), std::strerror(error)));
  }
  return Advertisement(file, entry.instance);
}

Advertisement::~Advertisement() {
  if (file_.empty()) return;
  const auto there = read_entry(file_);
  if (there && there->instance == instance_) (void)::remove(file_.c_str());
}

Result<BusReading> read_bus(const std::filesystem::path& bus) {
  BusReading reading;
  std::error_code error;
  std::filesystem::directory_iterator next(bus, error);
  if (error == std::errc::no_such_file_or_directory) return reading;
  if (error) return no_bus(bus, fmt::format("cannot read the bus: {}", error.message()));
  RODEO_TRY(check_runtime_directory(bus));
  std::vector<std::filesystem::path> files;
  for (; next != std::filesystem::directory_iterator{}; next.increment(error)) {
    if (next->path().extension() != kExtension) continue;
    if (files.size() == kMostBusFiles) {
      reading.unreadable.push_back(
          {"transport.bus", fmt::format("there are more than {} files on the bus; the rest is ignored", kMostBusFiles),
           bus.string(), "remove those that no publisher writes"});
      break;
    }
    files.push_back(next->path());
  }
  if (error) return no_bus(bus, fmt::format("cannot read the bus: {}", error.message()));
  for (const std::filesystem::path& file : files) {
    auto entry = read_entry(file);
    if (entry) {
      reading.entries.push_back(*std::move(entry));
    } else if (std::filesystem::exists(file, error)) {  // a file that is gone belonged to a publisher that has just ended
      reading.unreadable.push_back(std::move(entry).error());
    }
  }
  std::ranges::sort(reading.entries, {}, &BusEntry::name);
  return reading;
}

Result<std::optional<BusEntry>> find_entry(const std::filesystem::path& bus, const std::string& name) {
  RODEO_TRY(check_runtime_directory(bus));
  if (!is_name(name)) return std::nullopt;
  const std::filesystem::path file = bus / (name + std::string(kExtension));
  auto entry = read_entry(file);
  std::error_code gone;
  if (!entry && !std::filesystem::exists(file, gone)) return std::nullopt;
  return entry;
}

bool accepts_connections(const std::string& address, std::uint16_t port, std::chrono::milliseconds patience) {
  return static_cast<bool>(connected_to(address, port, std::chrono::steady_clock::now() + patience));
}

bool is_alive(const BusEntry& entry, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  base::UniqueFd connected = connected_to(entry.address, entry.port, deadline);
  if (!connected) return false;
  ControlSocket socket(std::move(connected));
  for (;;) {
    const auto message = socket.next();
    if (!message) return message.error().code == "transport.closed";  // after other errors, another program answers
    if (*message) {
      const auto* const hello = std::get_if<formats::ControlHello>(&**message);
      // The instance is known only if the version agrees.
      return hello == nullptr || hello->version != formats::kControlVersion || hello->instance == entry.instance;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return true;
    socket.wait(left);
  }
}

Result<void> check_instance(const BusEntry& entry, std::uint64_t instance) {
  if (instance == entry.instance) return {};
  return std::unexpected(
      Error{"transport.closed", fmt::format("another process answers at {} port {}: {} has gone, and its file was left",
                                            entry.address, entry.port, entry.name)});
}

}  // namespace rodeo::transport
