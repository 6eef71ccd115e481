#!/bin/sh

# later
