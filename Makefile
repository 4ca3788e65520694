# `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# Pinned tools: each is built into .bin/ unless .bin/ contains that version already.
GOLANGCI_LINT_VERSION := v2.15.0
BUF_VERSION := v1.70.0
PROTOC_GEN_GO_VERSION := v1.36.12
PROTOC_GEN_GO_GRPC_VERSION := v1.6.2
GOVULNCHECK_VERSION := v1.8.0
# The Envoy rate limit service has no releases, and module proxies have few of its commits, so it is fetched from its
# repository.
ENVOY_RATELIMIT_VERSION := v1.4.1-0.20260706065234-f2fb15770f7f

TOOLS := $(CURDIR)/.bin
GOLANGCI_LINT := $(TOOLS)/golangci-lint
BUF := $(TOOLS)/buf
ENVOY_RATELIMIT := $(TOOLS)/service_cmd
PROTOC_GEN_GO := $(TOOLS)/protoc-gen-go
PROTOC_GEN_GO_GRPC := $(TOOLS)/protoc-gen-go-grpc

# The version of the source; it has a value even without git or without history.
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --always --dirty 2>/dev/null || echo unversioned)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
# The time of the commit and not of the build, so that two builds of one commit are equal.
COMMITTED ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
SDK := github.com/tollgate-dev/tollgate/plugins/sdk
BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION) -X main.revision=$(REVISION) -X main.committed=$(COMMITTED) -X $(SDK).bundledVersion=$(VERSION)'
PLUGINS := $(patsubst %/,./%,$(wildcard plugins/otp-*/ plugins/pkg-*/))
SOURCES := $(wildcard cmd core ports adapters plugins wiring test)

# The command that follows it runs in each module: the service, the SDK for plugins, the tests of the built service, and
# the tools.
IN_EACH_MODULE := test/modules.sh

# SQLite in Go is C that was translated. With the race detector it is ten times slower, and the detector cannot find
# anything in it. As GOFLAGS, the flags also apply to the programs that the tests build.
SQLITE_WITHOUT_RACE := -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc/...=-race=false
# By default, a program with the race detector waits one second before it exits.
WITH_RACE := GOFLAGS="$${GOFLAGS-} -trimpath $(SQLITE_WITHOUT_RACE)" GORACE=atexit_sleep_ms=0

# With -trimpath, all clones share what the build cache has; as GOFLAGS, it also applies to the programs that the tests
# build. Without debug information, a test links in a third of the time.
QUICK := GOFLAGS="$${GOFLAGS-} -trimpath"
LINK := -ldflags='-s -w'

# Many tests wait for a server or a browser, so that four packages at once keep two cores busy.
AT_ONCE := -p=4

# A package whose production code starts goroutines, or guards against those of its callers. What has no state of its
# own that several goroutines use cannot race, and its tests run without the detector.
STARTS_GOROUTINES := ^\s*(defer )?go |\.Go\(|^\s*"sync(/atomic)?"$$

# rapid divides its number of runs by five and their length by two in a short run; properties are to be tested as always.
SHORT := RAPID_CHECKS=500 RAPID_STEPS=60
# With the detector, a property shows races and not values, of which "make test" tries as many as above.
SHORT_RACE := RAPID_CHECKS=100 RAPID_STEPS=60

# Tests of one goroutine that "make test" runs too: the detector finds nothing in them, and makes them many times slower.
ALONE := ^Test(Plans|MigrationsRunFromEveryHistoricVersion|NameIndexFindsWhatAScanFinds|NameIndexKeepsBlocksSmall|ManyHotKeys)$$|^TestCrowdedRegistry$$/.*/^(reads_skip_deleted_rows|pages_add_up)$$

# Additional flags for go test, for example -run=TestServers.
TESTFLAGS ?=

FUZZTIME ?= 10s
# Additional flags for go test, for example -parallel=1.
FUZZFLAGS ?=

.PHONY: help run test test-race test-long servers check lint generate build release docs-site screenshots plots bench compare fuzz vuln
.PHONY: check-format check-structure check-vet check-generated check-tidy tool-lint tool-envoy-ratelimit tools-protobuf

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | while IFS=$$'\t' read -r target words; do printf '  %-12s %s\n' "$$target" "$$words"; done

run: build ## build and serve with embedded defaults and the example rate limit rules
	@export RUNTIME_ROOT="$${RUNTIME_ROOT-docs/examples/ratelimit}"; \
	export RUNTIME_SUBDIRECTORY="$${RUNTIME_SUBDIRECTORY-}"; \
	export RUNTIME_APPDIRECTORY="$${RUNTIME_APPDIRECTORY-config}"; \
	export RUNTIME_WATCH_ROOT="$${RUNTIME_WATCH_ROOT-false}"; \
	export DATA_DIR="$${DATA_DIR-./data}"; \
	exec bin/tollgate serve

test: ## run all tests but the long ones; starts PostgreSQL, Valkey and memcached for them
	$(SHORT) $(QUICK) test/servers/with.sh test/run.sh test -short -vet=off -shuffle=on $(LINK) $(AT_ONCE) $(TESTFLAGS) ./...

test-race: ## run the tests of the packages that start goroutines, but the long ones, with the race detector
	$(SHORT_RACE) $(WITH_RACE) test/servers/with.sh test/run.sh race -race -short -vet=off -shuffle=on -timeout=20m -skip='$(ALONE)' $(LINK) $(TESTFLAGS) \
	  $$(grep -rlE --include='*.go' --exclude='*_test.go' '$(STARTS_GOROUTINES)' $(filter-out test,$(SOURCES)) | xargs -n1 dirname | sort -u | sed 's|^|./|')

test-long: ## run all tests with the race detector, also the long ones
	$(WITH_RACE) test/servers/with.sh test/run.sh long -race -vet=off -shuffle=on -timeout=60m $(TESTFLAGS) ./...

servers: ## start the servers of the tests, print their addresses for another terminal, and wait for Ctrl-C
	@test/servers/with.sh bash -c 'export -p | grep -E "^declare -x (TEST_|(GO)?TMPDIR)"; exec sleep infinity' || [ $$? -eq 130 ]

check: check-format check-structure check-vet lint check-generated check-tidy ## check format, structure, language, vet, lint, generated files and each go.mod

lint: tool-lint ## run the pinned golangci-lint
	$(IN_EACH_MODULE) $(GOLANGCI_LINT) run --timeout=30m ./...

generate: tools-protobuf ## generate the Wire injectors, the protocols, the API page, the references in docs and the manifests
	@for folder in plugins/sdk/proto adapters/decideapi/extmcppb; do \
	  if [ -d $$folder ]; then echo "buf generate in $$folder"; (cd $$folder && PATH="$(TOOLS):$$PATH" $(BUF) generate); fi; \
	done
	@if compgen -G 'wiring/*.go' >/dev/null; then echo "go tool wire"; go tool wire gen ./wiring/...; fi
	@if [ -d adapters/rest/apidocs ]; then echo "go generate"; go generate ./adapters/rest/apidocs; fi
	@echo "docs/commands.md docs/settings.md"; go test -count=1 ./cmd/tollgate/program -run '^TestReferences$$' -update >/dev/null
	@echo "docs/packages.md"; go test -count=1 ./test/architecture -run '^TestPackagesPage$$' -update >/dev/null
	@echo "deploy/kubernetes"; go test -C test/acceptance -count=1 ./deploy -run '^TestChartIsCurrent$$' -update >/dev/null

build: ## build the static binaries: bin/tollgate, bin/ratelimit-client, bin/plugins/*
	@mkdir -p bin/plugins
	$(BUILD) -o bin/ ./cmd/tollgate ./cmd/ratelimit-client
	$(if $(PLUGINS),$(BUILD) -o bin/plugins/ $(PLUGINS))

docs-site: ## render docs/ as static pages with a search, in bin/site
	go run -C test/tools ./docsite -from $(CURDIR) -to $(CURDIR)/bin/site -version $(VERSION)

release: ## build dist/: archives, deb, rpm, list of modules, checksums; RELEASE_FLAGS=-only=linux/amd64 for one system
	rm -rf dist
	go run -C test/tools ./release -root ../.. -out ../../dist -version '$(VERSION)' -revision '$(REVISION)' -committed '$(COMMITTED)' $(RELEASE_FLAGS)

screenshots: ## write pictures of all pages of the console to bin/screenshots
	@mkdir -p bin/screenshots
	TEST_PICTURES=$(CURDIR)/bin/screenshots test/servers/with.sh go test -C test/acceptance -count=1 -run '^Test(Pages|Style)$$' ./consolebrowser

plots: ## draw the pictures of docs/ratelimit-algorithms.md: what each algorithm admits
	go run -C test/tools ./plots

bench: ## measure the service under load
	TMPDIR="$${TMPDIR-/tmp}" test/servers/with.sh go run ./test/load $(LOAD_FLAGS)

compare: tool-envoy-ratelimit ## compare answers and statistics with those of the Envoy rate limit service
	test/servers/with.sh go run ./test/compare -peer $(ENVOY_RATELIMIT) $(COMPARE_FLAGS)

fuzz: ## run each fuzz test for FUZZTIME (10s), then list the failed ones
	@failed=; \
	folders=$$({ grep -rlE --include='*_test.go' '^func Fuzz' $(SOURCES) || true; } | xargs -r -n1 dirname | sort -u); \
	for folder in $$folders; do \
	  listed=$$($(IN_EACH_MODULE) go test -list '^Fuzz' "./$$folder") || { echo "$$listed"; failed+="  $$folder does not build"$$'\n'; continue; }; \
	  for name in $$(grep '^Fuzz' <<<"$$listed" || true); do \
	    echo "$$folder $$name"; \
	    $(IN_EACH_MODULE) go test -run '^$$' -fuzz "^$$name\$$" -fuzztime '$(FUZZTIME)' $(FUZZFLAGS) "./$$folder" </dev/null || failed+="  $$folder $$name"$$'\n'; \
	  done; \
	done; \
	[ -z "$$failed" ] || { printf 'these fuzz tests failed:\n%s' "$$failed"; exit 1; } >&2

vuln: ## report known vulnerabilities in the code that we call; needs the vulnerability database
	$(IN_EACH_MODULE) go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) ./...

check-format:
	@unformatted=$$(gofmt -l $(SOURCES)); \
	[ -z "$$unformatted" ] || { echo "not formatted with gofmt:"; echo "$$unformatted"; exit 1; } >&2

# Rings, names, widths, watched words and the budget of the tree, with what they measure.
check-structure:
	@go test -count=1 -v ./test/architecture | grep -vE '^ *(=== |--- (PASS|SKIP))'

check-vet:
	$(IN_EACH_MODULE) go vet ./...

# Compares the files before and after, not with the last commit, so that uncommitted work can be checked.
check-generated:
	@sums() { find $(SOURCES) deploy -name '*.pb.go' -o -name 'wire_gen.go' -o -path 'deploy/kubernetes/*' -o -name values.schema.json -o -path '*/apidocs/openapi.*' -o -path '*/apidocs/page.*' -o -path '*/apidocs/pages/*' | LC_ALL=C sort | xargs -r sha256sum; }; \
	before=$$(sums); \
	$(MAKE) --no-print-directory generate; \
	diff <(echo "$$before") <(sums) || { echo "generated code was not up to date: run 'make generate' and commit the files above" >&2; exit 1; }

check-tidy:
	$(IN_EACH_MODULE) go mod tidy -diff

# install BINARY,PACKAGE,VERSION: the version is read from the binary's build information.
define install
	@if ! go version -m $(1) 2>/dev/null | grep -E '^[[:space:]]mod[[:space:]].*[[:space:]]$(subst .,\.,$(3))([[:space:]]|$$)' >/dev/null; then \
	  echo "installing $(2)@$(3)"; \
	  GOBIN=$(TOOLS) GOFLAGS= nice go install $(2)@$(3); \
	fi
endef

tool-lint:
	$(call install,$(GOLANGCI_LINT),github.com/golangci/golangci-lint/v2/cmd/golangci-lint,$(GOLANGCI_LINT_VERSION))

tool-envoy-ratelimit: export GOPRIVATE := github.com/envoyproxy/ratelimit
tool-envoy-ratelimit:
	$(call install,$(ENVOY_RATELIMIT),github.com/envoyproxy/ratelimit/src/service_cmd,$(ENVOY_RATELIMIT_VERSION))

tools-protobuf:
	$(call install,$(BUF),github.com/bufbuild/buf/cmd/buf,$(BUF_VERSION))
	$(call install,$(PROTOC_GEN_GO),google.golang.org/protobuf/cmd/protoc-gen-go,$(PROTOC_GEN_GO_VERSION))
	$(call install,$(PROTOC_GEN_GO_GRPC),google.golang.org/grpc/cmd/protoc-gen-go-grpc,$(PROTOC_GEN_GO_GRPC_VERSION))
