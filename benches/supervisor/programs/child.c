/* A child that costs nothing but its start: says through a pipe with a name that it runs, then waits for SIGTERM. */
#include <fcntl.h>
#include <unistd.h>

int main(int count, char **words) {
  int pipe = count > 1 ? open(words[1], O_WRONLY) : -1;
  if (pipe < 0 || write(pipe, ".", 1) != 1) return 1;
  close(pipe);
  for (;;) pause();
}
