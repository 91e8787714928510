# What one does in this repository. `make help` lists the targets; .ci/run runs
# them on a clean machine. Whatever is downloaded or built on the way is kept in
# MCP_BRIDGE_DEV_CACHE, so second runs are fast.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.ONESHELL:

GO        ?= go
PACKAGES  ?= ./...
BENCHTIME ?= 1s
BENCHSKIP ?=
FUZZTIME  ?= 10s
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS   := -X github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/internal/cli.version=$(VERSION)
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

# Run, not required: as a tool of this module it would add two hundred
# indirect requirements to go.mod.
LINT := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
TEST := $(GO) run ./.ci/gotest -timeout 30m
RUNSC := .ci/runsc

export CGO_ENABLED ?= 0
export MCP_BRIDGE_DEV_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mcp-bridge-dev
export MCP_BRIDGE_TEST_IMAGE ?= localhost/mcp-bridge-sandbox:latest

# What is tested is what is shipped.
test e2e bench: export MCP_BRIDGE_TEST_BINARY := $(CURDIR)/bin/mcp-bridge

# Asked when a recipe begins, for provisioning may have started it.
demo test contract e2e race cover bench: export DOCKER_HOST = $(shell .ci/provision docker-host)

##@ Use

.PHONY: demo
demo: build ## run a whole session: a client, the bridge, a sandbox, two MCP servers; needs no engine
	@.ci/provision servers
	$(GO) run ./examples/demo -bridge bin/mcp-bridge -npm '$(MCP_BRIDGE_DEV_CACHE)/npm'

.PHONY: build
build: runsc ## build bin/mcp-bridge, and gVisor's runsc beside it (RUNSC= to do without)
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/mcp-bridge ./cmd/mcp-bridge

.PHONY: runsc
runsc:
	@$(if $(RUNSC),GO='$(GO)' $(RUNSC) bin)

.PHONY: image
image: ## get or build the sandbox's image; FORCE=1 builds it anew
	.ci/provision engine
	sandbox-image/build/image.sh $(if $(FORCE),--force)

.PHONY: provision
provision: ## install what is missing: podman, docker, MCP servers, the image
	.ci/provision

.PHONY: docker-stop
docker-stop: ## end the docker daemon that provisioning started
	.ci/provision docker-stop

##@ Test

.PHONY: test
test: provision build ## run every test; fails where podman or docker is missing
	@failed=
	$(TEST) -count=1 $(PACKAGES) || failed=1
	.ci/test-python || failed=1
	[ -z "$$failed" ]

.PHONY: test-unit
test-unit: ## run the tests that need no container engine
	$(TEST) -short $(PACKAGES)
	.ci/test-python host

.PHONY: contract
contract: provision runsc ## run the engine contract on every engine
	$(TEST) -count=1 ./runtime/...

.PHONY: e2e
e2e: provision build ## drive the built binary as a client does
	$(TEST) -count=1 ./cmd/... ./examples/...

.PHONY: race
race: provision runsc ## run the Go tests under the race detector
	CGO_ENABLED=1 $(TEST) -count=1 -race $(PACKAGES)

.PHONY: cover
cover: provision runsc ## run the Go tests and report what they cover
	$(TEST) -count=1 -coverpkg=./... -coverprofile=cover.out $(PACKAGES)
	$(GO) tool cover -func=cover.out | tail -n 1

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME (10s)
	@for pkg in $$($(GO) list $(PACKAGES)); do
	  for target in $$($(GO) test -list '^Fuzz' "$$pkg" | grep '^Fuzz' || true); do
	    echo "$$pkg $$target"
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$pkg"
	  done
	done

.PHONY: bench
bench: provision build ## measure; BENCHTIME=10x for a quick look
	$(GO) test -run '^$$' -bench . -skip '$(BENCHSKIP)' -benchmem -benchtime $(BENCHTIME) -timeout 30m $(PACKAGES) |
	  sed -e '/no test files/d' -e '/^PASS$$/d'

.PHONY: bench-search
bench-search: ## measure the search: CATALOG=catalog.json QUERIES='queries*.jsonl', and MISSES=FILE to see what was not found
	@[ -n '$(CATALOG)' ] && [ -n '$(QUERIES)' ] || { echo 'name the data: CATALOG=… QUERIES=…' >&2; exit 2; }
	@MCP_BRIDGE_SEARCH_CATALOG='$(abspath $(CATALOG))' MCP_BRIDGE_SEARCH_QUERIES='$(abspath $(QUERIES))' \
	  MCP_BRIDGE_SEARCH_MISSES='$(abspath $(MISSES))' $(GO) test ./discovery -run '^TestSearchBench$$' -count=1 -v |
	  sed -n '/searchbench_test.go/,/^---/{//!p}'

##@ Keep

.PHONY: lint
lint: ## check style, layering and formatting
	$(LINT) run $(PACKAGES)

.PHONY: fmt
fmt: ## format the Go code
	$(LINT) fmt

.PHONY: tidy-check
tidy-check: ## check that go.mod and go.sum are what the code needs
	$(GO) mod tidy -diff
	$(GO) mod verify

.PHONY: cross
cross: ## build for every platform
	@for platform in $(PLATFORMS); do
	  echo "$$platform"
	  GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) build -trimpath -o /dev/null ./cmd/mcp-bridge
	done

.PHONY: clean
clean: ## remove what was built in the tree
	rm -rf bin dist cover.out
	find sandbox-image -name __pycache__ -prune -exec rm -rf {} +

.PHONY: help
help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
