// Registers an extractor for whole runs with a key of its own, a check, and re-stamping.
#include "calorimeter.h"

RODEO_PLUGIN(registry) {
  registry.add_extractor({.name = "calorimeter",
                          .help = "ECR counter, 24-bit L1 id, BCID and trigger type in a 16-byte header",
                          .keys = calorimeter::kExtractorSettings.keys()},
                         [](const rodeo::Parameters& parameters) {
                           return std::make_unique<calorimeter::Extractor>(calorimeter::kExtractorSettings.read(parameters));
                         });
  registry.add_checker({.name = "calorimeter_crc32", .help = "Payload size, and CRC-32 in the last four bytes"},
                       &calorimeter::check);
  registry.add_restamp({.name = "calorimeter", .help = "Writes the header and the CRC-32 anew"}, &calorimeter::restamp);
}
