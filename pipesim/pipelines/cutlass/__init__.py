"""CUTLASS's pipelines (cutlass/pipeline/sm90_pipeline.hpp and sm100_pipeline.hpp)."""
