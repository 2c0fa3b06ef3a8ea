#include "readout/consumer/sample_client.h"

#include <poll.h>

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/runtime_dir.h"

namespace rodeo::readout {
namespace {

constexpr std::string_view kEnding = ".events";
constexpr std::size_t kReadBytes = 64 * 1024;

Error no_sampler(std::string what, const std::filesystem::path& where) {
  return Error{
      "readout.no_sampler", std::move(what), where.string(),
      "start `rodeo readout CONFIG` with an event_sampler among its consumers; RODEO_RUNTIME_DIR must be the same for both"};
}

}  // namespace

Result<SampleClient> SampleClient::connect(std::string_view readout_name) {
  const std::filesystem::path directory = base::runtime_directory_name();
  if (!readout_name.empty()) return connect_to(directory / (std::string(readout_name) + std::string(kEnding)));
  // Connects to each socket to see whether its readout runs: killed processes leave their sockets behind.
  std::vector<SampleClient> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() != kEnding) continue;
    if (auto client = connect_to(entry.path())) found.push_back(std::move(*client));
  }
  if (found.empty()) return std::unexpected(no_sampler("no running readout offers events", directory));
  if (found.size() == 1) return std::move(found.front());
  std::vector<std::string> names;
  for (const auto& client : found) names.push_back(client.path_.stem().string());
  std::ranges::sort(names);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return std::unexpected(Error{"readout.which_sampler", fmt::format("{} readouts are possible: {}", names.size(), list),
                               directory.string(), "--name NAME"});
}

Result<SampleClient> SampleClient::connect_to(const std::filesystem::path& socket) {
  auto connected = base::connect_unix(socket);
  if (!connected)
    return std::unexpected(
        no_sampler(fmt::format("no running readout offers events here: {}", connected.error().what), socket));
  return SampleClient(std::move(*connected), socket);
}

Result<SampleClient::Outcome> SampleClient::next(Sample& sample, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (received_.size() >= kSampleHeaderBytes) {
      const auto header =
          decode_sample_header(std::span<const std::byte, kSampleHeaderBytes>(received_.data(), kSampleHeaderBytes));
      if (!header) {
        return std::unexpected(Error{"readout.sample_protocol", "the received data are not a sampled event of version 1",
                                     path_.string(), "use the `rodeo` of the same version as the readout"});
      }
      const std::size_t whole = std::size_t{header->header_bytes} + header->event_bytes;
      if (received_.size() >= whole) {
        sample.header = *header;
        sample.event.assign(received_.begin() + header->header_bytes,
                            received_.begin() + static_cast<std::ptrdiff_t>(whole));
        received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(whole));
        return Outcome::sample;
      }
    }
    if (!base::wait_for(socket_.get(), POLLIN, deadline)) return Outcome::nothing;
    const std::size_t before = received_.size();
    received_.resize(before + kReadBytes);
    base::ReceivedFds none;
    const base::IoResult got = base::receive_now(socket_.get(), std::span(received_).subspan(before), none);
    received_.resize(before + got.bytes);
    if (got.status == base::IoStatus::closed || got.status == base::IoStatus::failed) return Outcome::end;
  }
}

}  // namespace rodeo::readout
