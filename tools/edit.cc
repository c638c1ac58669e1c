// gradflow edit: serves a page that edits and runs a graph, or writes a page that edits the graph
// without a server.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/io/file.h"
#include "gradflow/saved_model/reader.h"
#include "tools/commands.h"
#include "tools/edit/edit_api.h"
#include "tools/edit/edit_lock.h"
#include "tools/edit/edit_server.h"
#include "tools/graph_limits.h"
#include "tools/view/page.h"

namespace gradflow::tools {

absl::Status EditCommand(const EditFlags& flags, std::ostream& out) {
  EditOptions options;
  options.path = flags.graph;
  options.threads = flags.threads;
  options.memory_limit = flags.memory_limit;
  options.timeout_seconds = flags.timeout_seconds;
  GRADFLOW_ASSIGN_OR_RETURN(options.file_access, MakeFileAccess(flags.files));
  GRADFLOW_ASSIGN_OR_RETURN(options.limits, MakeGraphLimits(flags.graph_limits));
  if (MaybeSavedModelDirectory(flags.graph)) {
    options.model = flags.graph;
    options.tag = flags.tag;
    options.path = SavedModelFile(flags.graph);
  } else if (!flags.tag.empty()) {
    return errors::InvalidArgument("--tag: '", flags.graph, "' is not a SavedModel");
  } else if (!flags.graph.empty() && !absl::EndsWith(flags.graph, ".pb") &&
             !absl::EndsWith(flags.graph, ".pbtxt")) {
    return errors::InvalidArgument("'", flags.graph, "' must end in .pb or .pbtxt");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<EditApi> api, EditApi::Make(options));
  if (!flags.output.empty()) {
    if (!absl::EndsWith(flags.output, ".html")) {
      return errors::InvalidArgument("--output '", flags.output, "' must end in .html");
    }
    GRADFLOW_ASSIGN_OR_RETURN(const std::string data, api->PageData(/*has_server=*/false));
    GRADFLOW_ASSIGN_OR_RETURN(const std::string page, Page(data));
    return errors::Prefix(absl::StrCat("'", flags.output, "': "),
                          internal::WriteFile(flags.output, {page}));
  }
  GRADFLOW_ASSIGN_OR_RETURN(const EditLock lock, EditLock::Acquire(options.path));
  // These signals, such as Ctrl-C, stop the server. They are blocked in this thread and in all
  // threads that it starts, so that only `waiter` below receives them.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  EditServerOptions server_options;
  server_options.port = flags.port;
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<EditServer> server,
                            EditServer::Make(api.get(), server_options));
  GRADFLOW_RETURN_IF_ERROR(lock.Announce(server->Origin()));
  api->SetAddress(server->Origin());
  out << "Open " << server->Url() << "\nCtrl-C ends the editor.\n" << std::flush;
  std::atomic<bool> is_done{false};
  std::thread waiter([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    if (is_done) return;
    server->Stop();
    // A second signal ends the process, even if a slow request is still in progress.
    sigwait(&signals, &signal);
    if (!is_done) _exit(128 + signal);
  });
  const absl::Status status = server->Serve();
  is_done = true;
  // The waiter may still wait for a signal.
  pthread_kill(waiter.native_handle(), SIGTERM);
  waiter.join();
  return status;
}

}  // namespace gradflow::tools
