# Colophon. `make` alone says what there is. The first run installs, once, into .tools; nothing else of the machine is touched.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
unexport CDPATH # with it, cd may go elsewhere

FUNCTIONS := api outbox-stream deliver sweep
ZIP_LIMIT := 5000000

# What AWS runs, arm64 or x86_64, and what this machine does: the local stack runs the functions as they are.
ARCHITECTURE ?= arm64
GOARCH_OF = $(if $(filter x86_64,$(1)),amd64,$(1))
LOCAL_GOOS := $(if $(filter docker,$(COLOPHON_MODE)),linux,$(shell go env GOHOSTOS 2>/dev/null))
LOCAL_GOARCH := $(shell go env GOHOSTARCH 2>/dev/null)
LOCAL_ARCHITECTURE = $(if $(filter amd64,$(LOCAL_GOARCH)),x86_64,$(LOCAL_GOARCH))

# The same flags everywhere, sam's builds included, give the same bytes. No version control stamp: sam builds elsewhere.
GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -buildid='
TAGS := lambda.norpc
# The functions' flags, so that what was compiled for them serves here too and is not compiled twice.
GO_RUN := env CGO_ENABLED=0 go run -trimpath -buildvcs=false -tags '$(TAGS)'
SOURCES = go.mod go.sum $(shell find functions internal api -type f -not -name '*_test.go' -not -path '*/testdata/*')

STACK := localstack/stack
PYTHON := .tools/venv-localstack/bin/python

.PHONY: help
help: ## What there is to do
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 } /^## / { print "\n" substr($$0, 4) }' $(MAKEFILE_LIST)
	@printf '\n  COLOPHON_PORT=4566    the local stack'"'"'s port\n  COLOPHON_MODE=auto    auto, host or docker\n  ARCHITECTURE=arm64    what make build builds for: arm64 or x86_64\n  STACK_NAME=…          the stack of make deploy; as samconfig.toml says (colophon)\n  MOVE_TABLES=no        yes lets make deploy move a stack from the tables it was given to others\n\n'

## See it run

.PHONY: demo up down logs
demo: up ## Publish a release on this machine and watch its announcement arrive
	@$(STACK) exec -- $(GO_RUN) ./cmd/colophon demo --stack colophon-local
	@echo "The stack stays up: 'make logs' shows what its functions say, 'make down' ends it."

up: ## Start the local stack and deploy; quick where nothing has changed
	@$(MAKE) --no-print-directory install WITH=local
	@$(STACK) up

down: ## End the local stack: exactly what was started
	@$(STACK) down

logs: ## The functions' log lines, as they come
	@$(STACK) logs

## Build and deploy

.PHONY: build local killpoints sizes
build: $(FUNCTIONS:%=build/%/bootstrap) sizes ## The functions' binaries for AWS, and their zips, each held under 5 MB

sizes: $(FUNCTIONS:%=build/%/bootstrap)
	@go run ./localstack/pack -limit $(ZIP_LIMIT) $(FUNCTIONS:%=build/%)

local: $(FUNCTIONS:%=build/local/%/bootstrap) # for this machine

killpoints: $(FUNCTIONS:%=build/killpoints/%/bootstrap) # for this machine, and with the tests' kill points

build/%/bootstrap: $(SOURCES) build/.architecture
	@echo "Building $@ ($(ARCHITECTURE)) …"
	@GOOS=linux GOARCH=$(call GOARCH_OF,$(ARCHITECTURE)) $(GO_BUILD) -tags '$(TAGS)' -o $@ ./functions/$*

build/local/%/bootstrap: $(SOURCES)
	@echo "Building $@ …"
	@GOOS=$(LOCAL_GOOS) GOARCH=$(LOCAL_GOARCH) $(GO_BUILD) -tags '$(TAGS)' -o $@ ./functions/$*

build/killpoints/%/bootstrap: $(SOURCES)
	@echo "Building $@ …"
	@GOOS=$(LOCAL_GOOS) GOARCH=$(LOCAL_GOARCH) $(GO_BUILD) -tags '$(TAGS) killpoints' -o $@ ./functions/$*

build/.architecture: FORCE # changes with ARCHITECTURE, and then all is built again
	@mkdir -p build && { [ "$$(cat $@ 2>/dev/null)" = $(ARCHITECTURE) ] || echo $(ARCHITECTURE) >$@; }

.PHONY: FORCE
FORCE:

# What `sam build` asks for, by the functions' names in the template.
SAM_BUILD = GOOS=linux GOARCH=$(call GOARCH_OF,$(ARCHITECTURE)) $(GO_BUILD) -tags '$(TAGS)' -o "$(ARTIFACTS_DIR)/bootstrap"
.PHONY: build-ApiFunction build-OutboxStreamFunction build-DeliverFunction build-SweepFunction
build-ApiFunction:
	$(SAM_BUILD) ./functions/api
build-OutboxStreamFunction:
	$(SAM_BUILD) ./functions/outbox-stream
build-DeliverFunction:
	$(SAM_BUILD) ./functions/deliver
build-SweepFunction:
	$(SAM_BUILD) ./functions/sweep

STACK_NAME ?=
MOVE_TABLES ?= no
.PHONY: deploy
deploy: install-sam ## Build and deploy to AWS; asks what it needs to know
	ARCHITECTURE=$(ARCHITECTURE) $(SAM) build
	go run ./deploy/pair .aws-sam/build
	stack=$$(go run ./deploy/tables -stack '$(STACK_NAME)' -region "$$(deploy/region)" $(if $(filter yes,$(MOVE_TABLES)),-move) .aws-sam/build) && \
	  $(SAM) deploy --guided $$stack

## Check

.PHONY: test test-go test-localstack test-stack
test: ## All tests that need Go, make, git, Python and cargo alone
	@$(MAKE) --no-print-directory install WITH='vet killpoints'
	@$(MAKE) --no-print-directory unit test-localstack test-stack
	@echo "All tests passed."

test-go: vet unit # vet, and the unit, property and template tests

.PHONY: vet unit
unit: install
	go test ./...

vet:
	go vet ./...
	go vet -tags stack ./e2e/...
	go vet -tags restore ./e2e/...
	go vet -tags killpoints ./functions/... ./internal/...

test-localstack: install # the local stack's own
	cd localstack && ../$(PYTHON) -m pytest --quiet

test-stack: install killpoints # the whole, on a stack of its own, which is always ended
	$(STACK) run --functions build/killpoints -- go test -count=1 -tags stack -timeout 15m ./e2e/...

.PHONY: test-restore
test-restore: install killpoints # a first deployment that failed, and a restore by four parameters, on a LocalStack of their own
	$(STACK) run --bare -- go test -count=1 -tags restore -timeout 10m ./e2e

.PHONY: test-sam
test-sam: install install-sam # sam builds the same bytes as make build, and deploys to a local stack
	$(MAKE) --no-print-directory build ARCHITECTURE=$(LOCAL_ARCHITECTURE)
	ARCHITECTURE=$(LOCAL_ARCHITECTURE) $(SAM) build --config-env local
	go run ./deploy/pair .aws-sam/build
	cmp build/api/bootstrap .aws-sam/build/ApiFunction/bootstrap
	cmp build/outbox-stream/bootstrap .aws-sam/build/OutboxStreamFunction/bootstrap
	cmp build/deliver/bootstrap .aws-sam/build/DeliverFunction/bootstrap
	cmp build/sweep/bootstrap .aws-sam/build/SweepFunction/bootstrap
	$(STACK) run --bare --allow .aws-sam/build/*/bootstrap -- bash -e -c '\
	  $(SAM) deploy --config-env local; \
	  go run ./cmd/colophon demo --stack colophon-local'

.PHONY: lint
lint: install install-sam ## Formats, vet, staticcheck, types, and the template's linters
	@files=$$(gofmt -l api bench client cmd deploy e2e functions internal localstack); [ -z "$$files" ] || { echo "not gofmted: $$files"; exit 1; }
	go vet ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	cd localstack && ../$(PYTHON) -m mypy --cache-dir ../.tools/mypy colophon_localstack tests
	.tools/venv-sam/bin/cfn-lint template.yaml
	@for year in 2025 2024; do localstack/install cfn-lint-$$year && echo "cfn-lint of $$year" && .tools/venv-cfn-lint-$$year/bin/cfn-lint template.yaml || exit 1; done
	AWS_ACCESS_KEY_ID=none AWS_SECRET_ACCESS_KEY=none $(SAM) validate --lint

## Check more: each needs something else, names it, and fails without it

.PHONY: sim chaos model netns verifiers pages vulncheck fuzz
sim: ## The protocol in simulated worlds, for ten minutes (SIM='-seeds 1000', '-tell -from 7')
	go run ./internal/sim/cmd/sim $(or $(SIM),-time 10m -beside 2)

KILLS ?= 200
chaos: install killpoints ## Function processes are killed KILLS (200) times while releases are published
	COLOPHON_KILLS=$(KILLS) $(STACK) run --functions build/killpoints -- \
	  go test -count=1 -v -tags stack -timeout 60m -run TestNothingIsLostOrOutOfOrderWhileFunctionsAreKilled ./e2e

model: ## The model of the slot, its quick part (needs spin and gcc; SEARCH=name runs one search)
	docs/model/check.sh quick $(SEARCH)

netns: ## The way out, with sockets watched and paths that drop (needs Linux, root and ip)
	go test -count=1 -tags netns ./internal/egress

verifiers: ## Signatures checked by the standard's libraries (needs Node with npm, and Python)
	docs/checked/install
	go test -count=1 -tags verifiers ./docs/checked

pages: install killpoints install-dynoxide ## The commands of README and docs that nothing else runs (needs spin and gcc)
	go test -count=1 -tags pages -timeout 20m -run TestTheCommandsOfThePagesWork ./docs/checked

vulncheck: ## What is known of vulnerabilities in the dependencies (needs Go's database; where that is out of reach: not checked)
	.ci/vulncheck

FUZZ_TIME ?= 1m
FUZZ_IN ?=
fuzz: ## Each fuzz target below FUZZ_IN for FUZZ_TIME
	@for package in $$(grep -rl --include='*_test.go' '^func Fuzz' ./$(FUZZ_IN) | grep -v '^./.tools' | xargs -n1 dirname | sort -u); do \
	  for target in $$(grep -ho '^func Fuzz[A-Za-z]*' $$package/*_test.go | cut -c6-); do \
	    echo "$$package $$target"; \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ_TIME) -fuzzminimizetime 10x $$package || exit 1; \
	  done; done

.PHONY: bench
SCENARIO ?= all
bench: install-dynoxide .tools/bin/aws-lambda-rie ## Load on the real function code; each run adds to docs/benchmarks.md. SCENARIO='steady -rate 100' takes one
	go run ./bench $(SCENARIO)

# AWS's runtime interface emulator, for the cold starts. Its tags are not served as modules; this commit is.
.tools/bin/aws-lambda-rie:
	GOBIN=$(CURDIR)/.tools/bin go install github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie@v0.0.0-20261030222936-bef5c4ba774d

## Install

# sam tells nobody, asks no machine for credentials, and finds this repository's make and go.
SAM = SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=$$(deploy/region) .tools/venv-sam/bin/sam

.PHONY: install install-localstack install-dynoxide install-sam prerequisites
# WITH names targets that need none of it: they are made in the minutes in which the engine's build keeps one processor.
install: ## What the local stack needs, into .tools: a few minutes, once
	@localstack/install prerequisites
	@$(MAKE) --no-print-directory -j3 install-localstack install-dynoxide $(WITH)

install-localstack:
	@localstack/install localstack

install-dynoxide:
	@localstack/install dynoxide

install-sam: ## The SAM command line and cfn-lint, for make deploy and make lint
	@localstack/install sam

.PHONY: lock
lock: install-localstack # the Python sets anew, from localstack/requirements/*.in
	@localstack/install lock

.PHONY: clean
clean: down ## End the stack and remove what was built; .tools stays
	rm -rf build .run .aws-sam
