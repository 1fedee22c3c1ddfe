# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds and installs Punctual: make && sudo make install
#
# make install PREFIX=/usr DESTDIR=/tmp/root installs below DESTDIR what is to be in /usr.
# Kernel modules are installed by themselves: kmod/README.md

PREFIX ?= /usr/local
BIN = $(DESTDIR)$(PREFIX)/bin
LIB = $(DESTDIR)$(PREFIX)/lib/punctual
SHARE = $(DESTDIR)$(PREFIX)/share
BUILT ?= target/release
DROP_INS = cyclicdeadline cyclictest hackbench hwlatdetect oslat realfeel sendme

all:
	./build

# Separate from building, which should not be done as root.
install:
	@test -x $(BUILT)/punctual-target || { echo 'expected $(BUILT)/punctual-target, found none: run make first' >&2; exit 1; }
	install -d $(BIN) $(LIB)/drop-in/man/man8 $(SHARE)/man/man1 \
		$(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions \
		$(SHARE)/fish/vendor_completions.d
	install -m 755 $(BUILT)/punctual $(BIN)
	install -m 755 $(BUILT)/punctual-target $(BUILT)/punctual-wire $(BUILT)/punctual-calls $(LIB)
	for machine in $(TARGETS); do \
		install -m 755 $(BUILT)/punctual-target-$$machine $(BUILT)/punctual-wire-$$machine $(LIB) || exit 1; \
		[ ! -e $(BUILT)/punctual-calls-$$machine ] || \
			install -m 755 $(BUILT)/punctual-calls-$$machine $(LIB) || exit 1; done
	install -m 644 $(BUILT)/libpunctual_scope.so $(LIB)
	for name in $(DROP_INS); do ln -sf ../punctual-target $(LIB)/drop-in/$$name; done
	install -m 644 $(BUILT)/man/man1/*.1 $(SHARE)/man/man1
	install -m 644 $(BUILT)/man/man8/*.8 $(LIB)/drop-in/man/man8
	$(BUILT)/punctual completions bash >$(SHARE)/bash-completion/completions/punctual
	$(BUILT)/punctual completions zsh >$(SHARE)/zsh/site-functions/_punctual
	$(BUILT)/punctual completions fish >$(SHARE)/fish/vendor_completions.d/punctual.fish

uninstall:
	rm -rf $(LIB)
	rm -f $(BIN)/punctual $(SHARE)/man/man1/punctual.1 $(SHARE)/man/man1/punctual-*.1 \
		$(SHARE)/bash-completion/completions/punctual \
		$(SHARE)/zsh/site-functions/_punctual \
		$(SHARE)/fish/vendor_completions.d/punctual.fish

test:
	./test

.PHONY: all install uninstall test
