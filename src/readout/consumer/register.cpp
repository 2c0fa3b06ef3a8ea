#include "readout/consumer/register.h"

#include "readout/consumer/event_sampler.h"
#include "readout/consumer/file_writer.h"
#include "readout/consumer/fragment_processor.h"
#include "readout/consumer/fragment_publisher.h"
#include "readout/consumer/hlt_request_handler.h"
#include "readout/consumer/verify_rdh_work.h"
#include "readout/consumer/works.h"

namespace rodeo::readout {

void register_consumers(Registry& registry) {
  registry.add_consumer(
      {.name = "processor", .help = "Runs a work on every fragment, then passes it on.", .keys = FragmentProcessor::keys()},
      [&registry](const Parameters& parameters) { return FragmentProcessor::create(parameters, registry); });
  registry.add_consumer(
      {.name = "file_writer", .help = "Writes fragments as full events to ATLAS data files.", .keys = FileWriter::keys()},
      [](const Parameters& parameters) { return FileWriter::create(parameters, run_info()); });
  registry.add_consumer({.name = "event_sampler",
                         .help = "Shows some of the fragments to `rodeo events`, and never slows the run.",
                         .keys = EventSampler::keys()},
                        [](const Parameters& parameters) { return EventSampler::create(parameters, run_info()); });
  registry.add_consumer({.name = "publish",
                         .help = "Sends fragments, all or a share, over the network to subscribers.",
                         .keys = FragmentPublisher::keys()},
                        [](const Parameters& parameters) { return FragmentPublisher::create(parameters, run_info()); });
  registry.add_consumer({.name = "hlt_request_handler",
                         .help = "Keeps fragments until the farm clears them, and serves them to it over the network.",
                         .keys = HltRequestHandler::keys()},
                        [](const Parameters& parameters) { return HltRequestHandler::create(parameters, run_info()); });
}

void register_works(Registry& registry) {
  registry.add_work(
      {.name = "verify", .help = "Verifies every byte of emulated payload.", .keys = VerifyWork::keys()},
      [](const Parameters& parameters) { return std::make_unique<VerifyWork>(VerifyWork::settings(parameters)); });
  registry.add_work(
      {.name = "verify_rdh",
       .help = "Verifies every byte of frames of RDH pages that an emulated card sent.",
       .keys = VerifyRdhWork::keys()},
      [](const Parameters& parameters) { return std::make_unique<VerifyRdhWork>(VerifyRdhWork::settings(parameters)); });
  registry.add_work({.name = "read", .help = "Reads every byte and does nothing with it."},
                    [](const Parameters&) { return std::make_unique<ReadWork>(); });
  registry.add_work({.name = "release", .help = "Does nothing: releases fragments as fast as they come."},
                    [](const Parameters&) { return std::make_unique<ReleaseWork>(); });
}

}  // namespace rodeo::readout
