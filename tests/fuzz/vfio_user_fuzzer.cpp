// vfio-user messages: any bytes are refused with an errno or decoded; a decoded request encodes to the same request, and
// the decoding of replies survives any bytes.
#include <algorithm>
#include <vector>

#include "formats/vfio_user.h"
#include "fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rodeo::formats::vfio_user;
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                                     reinterpret_cast<const std::byte*>(data) + size);
  if (bytes.size() < kHeaderBytes) return 0;
  const Header header = read_header(bytes);
  const std::span<const std::byte> payload = std::span(bytes).subspan(kHeaderBytes);

  if (const auto info = decode_region_info(payload); info && info->areas)
    FUZZ_CHECK(info->areas->size() <= payload.size() / 16);
  if (const auto read = decode_region_data(payload)) FUZZ_CHECK(read->size() + 16 <= payload.size());
  if (const auto dma = decode_dma_access(payload, true)) FUZZ_CHECK(dma->data.size() == dma->count);
  (void)decode_device_info(payload);
  (void)decode_irq_info(payload);

  const auto request = decode_request(header, payload);
  if (!request) {
    FUZZ_CHECK(request.error() != 0);
    return 0;
  }
  MessageWriter writer;
  writer.request(header.id, *request, header.flags);
  const Header again = read_header(writer.bytes());
  FUZZ_CHECK(again.size == writer.bytes().size() && again.id == header.id && again.command == header.command);
  const auto second = decode_request(again, writer.bytes().subspan(kHeaderBytes));
  FUZZ_CHECK(second && second->index() == request->index());
  MessageWriter twice;
  twice.request(header.id, *second, header.flags);
  FUZZ_CHECK(std::ranges::equal(twice.bytes(), writer.bytes()));
  if (const auto* multi = std::get_if<WriteMulti>(&*request)) {
    for (std::size_t i = 0; i < multi->size(); ++i) (void)(*multi)[i];
  }
  return 0;
}
