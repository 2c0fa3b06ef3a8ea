// Implements include/rodeo/front_end.h with the classes of this room: results become exceptions.
#include <type_traits>
#include <utility>

#include "rodeo/front_end.h"
#include "transport/secret.h"
#include "transport/sender.h"

namespace rodeo {
namespace {

template <typename T>
T value_or_throw(Result<T>&& result) {
  if (!result) throw FrontEndError(result.error().code, result.error().message());
  return std::move(*result);
}

}  // namespace

struct FrontEndSender::Inside {
  transport::Sender sender;
};

FrontEndSender::FrontEndSender(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
FrontEndSender::FrontEndSender(FrontEndSender&&) noexcept = default;
FrontEndSender& FrontEndSender::operator=(FrontEndSender&&) noexcept = default;
FrontEndSender::~FrontEndSender() = default;

FrontEndSender FrontEndSender::claim(std::span<const Fid> links, const FrontEndOptions& options) {
  const std::string secret = value_or_throw(transport::read_secret(options.secret_file));
  auto sender = value_or_throw(transport::Sender::claim(
      {.name = options.name, .bus = options.bus, .secret = secret, .patience = options.patience}, links));
  return FrontEndSender(std::make_unique<Inside>(std::move(sender)));
}

std::vector<std::byte> FrontEndSender::send(Fid link, std::span<const std::byte> message) {
  return value_or_throw(inside_->sender.send(link, message));
}

std::uint64_t FrontEndSender::post(Fid link, std::span<const std::byte> message) {
  return value_or_throw(inside_->sender.post(link, message));
}

std::optional<FrontEndAnswer> FrontEndSender::next_answer() {
  auto answer = value_or_throw(inside_->sender.next());
  if (!answer) return std::nullopt;
  FrontEndAnswer out{.number = answer->number, .bytes = std::move(answer->bytes)};
  if (answer->error) {
    out.code = answer->error->code;
    out.what = answer->error->what;
  }
  return out;
}

}  // namespace rodeo
