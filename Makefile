# Each target is one command that can be run by hand as well; .ci/run runs
# what must hold before anything lands.
.PHONY: all build test race lint fuzz bench demo ci

all: lint test

build: ## the program, for this machine
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o mutirao ./cmd/mutirao

test: ## every test
	go test ./...

race: ## every test under the race detector
	go test -race ./...

lint: ## formatting, vet, staticcheck
	test -z "$$(gofmt -l .)"
	go vet ./...
	go tool staticcheck ./...

bench: ## the figures of docs/performance.md
	go test -run '^$$' -bench . -benchtime 3000x -count 3 ./node/assemble ./node/store ./node/mesh ./choreo

fuzz: ## every fuzz target for FUZZTIME (default 1m) each
	bash .ci/fuzz $(or $(FUZZTIME),1m)

demo: ## the fire call, over three processes
	go run ./cmd/mutirao demo --headless

ci:
	bash .ci/run
