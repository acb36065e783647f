//! One child process: group, stdio, signals, and the one reaper.
