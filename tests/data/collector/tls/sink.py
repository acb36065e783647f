"""An HTTPS endpoint that wants a client certificate, or shows the certificate that it is given and wants none; prints its
port, then one line for each request."""
import http.server
import pathlib
import ssl
import sys

here = pathlib.Path(__file__).parent


class Take(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        print(self.path, self.headers["Host"], flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        page = b"of_the_page 1\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *words):
        pass


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
if len(sys.argv) > 1:
    context.load_cert_chain(here / sys.argv[1], here / "own-key.pem")
else:
    context.load_cert_chain(here / "cert.pem", here / "key.pem")
    context.load_verify_locations(here / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Take)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
