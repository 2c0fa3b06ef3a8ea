// A library that has nothing to do with Rodeo.
extern "C" int answer();
extern "C" int answer() { return 42; }
