// Descriptors 0, 1 and 2 as a program expects them, whatever started it.
#pragma once

namespace tuner {

// To be called first in main(), before any file is opened and any thread started.
//   closed        it is opened so that using it fails: else the next file that is opened would be it, and a
//                 database would get what is printed. In a program that calls this, that is done before
//                 libraries open files of their own
//   O_NONBLOCK    (node, expect and ssh leave it behind) it is opened anew without it, because a reader would
//                 take "nothing yet" for an error, and a printer lose what a slow reader has no room for.
//                 Where that is not possible, as with a socket, the flag is taken away, also for others who
//                 share the description.
//   SIGXFSZ       is ignored, as is SIGPIPE: a write beyond `ulimit -f` or to nobody fails and is told
void prepare_standard_streams();

// Whether whoever read from this pipe or socket has closed it.
bool has_no_reader(int fd);

}  // namespace tuner
