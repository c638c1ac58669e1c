// A shared library for plugin_test.cc that is not a plugin.
extern "C" __attribute__((visibility("default"))) int NoPlugin() { return 0; }
