#!/usr/bin/env bash
set -euo pipefail
kubectl delete namespace create-pod-test --ignore-not-found
kubectl create namespace create-pod-test
