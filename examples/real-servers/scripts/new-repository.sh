#!/bin/sh
# Makes a repository with two commits in the folder `story` of the trial.
set -e
cd "$PROCTOR_TRIAL_DIR"
git init --quiet --initial-branch=main story
cd story
git config user.name Ada
git config user.email ada@example.com
git config commit.gpgsign false
echo 'It was a dark night.' > story.txt
git add story.txt
git commit --quiet --message 'Begin the story'
echo 'Then it rained.' >> story.txt
git commit --quiet --all --message 'Let it rain'
