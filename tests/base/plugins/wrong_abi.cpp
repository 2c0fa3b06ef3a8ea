// A plug-in from the future: another ABI version, and a registration that must not be called.
#include <rodeo/plugin.h>

#include <cstdlib>

extern "C" {
extern const std::uint32_t rodeo_plugin_abi;
const std::uint32_t rodeo_plugin_abi = rodeo::kPluginAbi + 1;
void rodeo_plugin_register(rodeo::Registry&);
void rodeo_plugin_register(rodeo::Registry&) { std::abort(); }
}
