"""Certificates and keys for tests, made by the openssl program: on P-256, which costs nothing."""

import functools
import pathlib
import ssl
import subprocess

CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def openssl(*words):
    ran = subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, text=True)
    return ran.stdout.strip()


class Pair:
    """A certificate and its key, in files of their own."""

    def __init__(self, certificate, key):
        self.certificate, self.key = pathlib.Path(certificate), pathlib.Path(key)

    @functools.cached_property
    def serial(self):
        """As clients see it."""
        words = openssl("x509", "-in", self.certificate, "-noout", "-serial")
        return words.partition("=")[2]


class Authority:
    """Vouches for others. Makes its files in the folder."""

    def __init__(self, folder, name="authority"):
        self.folder = pathlib.Path(folder)
        self.file = self.folder / f"{name}.crt"
        self.key = self.folder / f"{name}.key"
        openssl("req", "-x509", *CURVE, "-keyout", self.key, "-out", self.file,
                "-subj", f"/CN={name}", "-days", 30)

    def issue(self, name, *, days=30):
        """For localhost and 127.0.0.1. With negative days it has ended already."""
        made = Pair(self.folder / f"{name}.crt", self.folder / f"{name}.key")
        request = self.folder / f"{name}.csr"
        extensions = self.folder / f"{name}.cnf"
        extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n"
                              "basicConstraints=critical,CA:FALSE\n", encoding="ascii")
        openssl("req", "-new", *CURVE, "-keyout", made.key, "-out", request, "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self.key,
                "-out", made.certificate, "-days", days, "-extfile", extensions)
        return made

    def client(self, pair=None, **more):
        """The settings of a client that trusts this authority, and shows the pair if there is one."""
        context = ssl.create_default_context(cafile=str(self.file))
        for name, value in more.items():
            setattr(context, name, value)
        if pair is not None:
            context.load_cert_chain(str(pair.certificate), str(pair.key))
        return context
