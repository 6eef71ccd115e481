#!/usr/bin/env bash
set -euo pipefail
kubectl delete namespace create-pod-test --ignore-not-found --wait=false
